// SPDX-License-Identifier: Apache-2.0
#include "import/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/strings.h"
#include "import/log_reader.h"

namespace headroom {

namespace {

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string text = "\"";
  for (const char c : cell) text += c == '"' ? "\"\"" : std::string(1, c == '\n' || c == '\r' ? ' ' : c);
  return text + '"';
}

struct DcgmField {
  std::string_view exporter, dmon, column;
};
constexpr std::array kDcgmFields{
    DcgmField{"DCGM_FI_DEV_GPU_UTIL", "GPUTL", "utilization.gpu"},
    DcgmField{"DCGM_FI_DEV_MEM_COPY_UTIL", "MCUTL", "utilization.memory"},
    DcgmField{"DCGM_FI_DEV_ENC_UTIL", "ENCUT", "utilization.encoder"},
    DcgmField{"DCGM_FI_DEV_DEC_UTIL", "DECUT", "utilization.decoder"},
    DcgmField{"DCGM_FI_DEV_FB_USED", "FBUSD", "memory.used"},
    DcgmField{"DCGM_FI_DEV_FB_TOTAL", "FBTTL", "memory.total"},
    DcgmField{"DCGM_FI_DEV_FB_RESERVED", "FBRSV", "memory.reserved"},
    DcgmField{"DCGM_FI_DEV_POWER_USAGE", "POWER", "power.draw"},
    DcgmField{"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "EPLIM", "enforced.power.limit"},
    DcgmField{"DCGM_FI_DEV_POWER_MGMT_LIMIT", "PMLIM", "power.limit"},
    DcgmField{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "TOTEC", "total_energy_consumption"},
    DcgmField{"DCGM_FI_DEV_GPU_TEMP", "TMPTR", "temperature.gpu"},
    DcgmField{"DCGM_FI_DEV_MEMORY_TEMP", "MMTMP", "temperature.memory"},
    DcgmField{"DCGM_FI_DEV_SM_CLOCK", "SMCLK", "clocks.sm"},
    DcgmField{"DCGM_FI_DEV_MEM_CLOCK", "MMCLK", "clocks.mem"},
    DcgmField{"DCGM_FI_DEV_PSTATE", "PSTAT", "pstate"},
    DcgmField{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "GRACT", "graphics_active_ratio"},
    DcgmField{"DCGM_FI_PROF_SM_ACTIVE", "SMACT", "sm_active_ratio"},
    DcgmField{"DCGM_FI_PROF_SM_OCCUPANCY", "SMOCC", "sm_occupancy_ratio"},
    DcgmField{"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "TENSO", "tensor_active_ratio"},
    DcgmField{"DCGM_FI_PROF_DRAM_ACTIVE", "DRAMA", "dram_active_ratio"},
    DcgmField{"DCGM_FI_PROF_PIPE_FP64_ACTIVE", "FP64A", "fp64_active_ratio"},
    DcgmField{"DCGM_FI_PROF_PIPE_FP32_ACTIVE", "FP32A", "fp32_active_ratio"},
    DcgmField{"DCGM_FI_PROF_PIPE_FP16_ACTIVE", "FP16A", "fp16_active_ratio"},
    DcgmField{"DCGM_FI_PROF_PCIE_TX_BYTES", "PCITX", "pcie_tx_bytes_per_second"},
    DcgmField{"DCGM_FI_PROF_PCIE_RX_BYTES", "PCIRX", "pcie_rx_bytes_per_second"},
    DcgmField{"DCGM_FI_PROF_NVLINK_TX_BYTES", "NVLTX", "nvlink_tx_bytes_per_second"},
    DcgmField{"DCGM_FI_PROF_NVLINK_RX_BYTES", "NVLRX", "nvlink_rx_bytes_per_second"},
};

}  // namespace

void LogTable::add(Row row) { rows_.push_back(std::move(row)); }

std::string LogTable::csv() const {
  std::set<std::string, std::less<>> names;
  for (const Row& row : rows_)
    for (const auto& [name, cell] : row) names.insert(name);
  std::string text = join({names.begin(), names.end()}, ",") + '\n';
  for (const Row& row : rows_) {
    bool first = true;
    for (const std::string& name : names) {
      if (!std::exchange(first, false)) text += ',';
      if (const auto cell = row.find(name); cell != row.end()) text += quoted(cell->second);
    }
    text += '\n';
  }
  return text;
}

std::string_view dcgm_column(std::string_view field) {
  const auto known = std::find_if(kDcgmFields.begin(), kDcgmFields.end(),
                                  [&](const DcgmField& f) { return f.exporter == field || f.dmon == field; });
  return known == kDcgmFields.end() ? "" : known->column;
}

LogFormat sniff_table(std::string_view text) {
  constexpr std::size_t kHead = 4096;
  const std::string_view head = trim(text.substr(0, kHead));
  const auto has = [&](std::string_view part) { return head.find(part) != std::string_view::npos; };
  if (head.starts_with('<')) return has("<nvidia_smi_log") ? LogFormat::kSmiXml : LogFormat::kUnknown;
  if (head.starts_with('{')) {
    if (has("\"resultType\"")) return LogFormat::kPrometheus;
    return has("\"query_time\"") || has("\"gpus\"") ? LogFormat::kGpustat : LogFormat::kUnknown;
  }
  if (head.starts_with("at_ns,time,source,key")) return LogFormat::kExportCsv;
  if (has("| NVIDIA-SMI ")) return LogFormat::kSmiText;
  if (has("# TYPE DCGM_FI_") || has("DCGM_FI_DEV_GPU_UTIL{")) return LogFormat::kScrapes;
  if (is_long_header(csv_cells(head.substr(0, head.find('\n'))))) return LogFormat::kLongCsv;
  for (const std::string_view line : split(head, '\n')) {
    if (line.starts_with("#Entity") || line.starts_with("# Entity")) return LogFormat::kDcgm;
    if (line.starts_with('#') && line.find(" gpu ") != line.npos && line.find(" pid ") != line.npos)
      return LogFormat::kPmon;
  }
  return LogFormat::kUnknown;
}

Result<LogTable> table_of(LogFormat format, std::string_view text) {
  switch (format) {
    case LogFormat::kSmiXml:
      return table_of_smi_xml(text);
    case LogFormat::kSmiText:
      return table_of_smi_text(text);
    case LogFormat::kScrapes:
      return table_of_scrapes(text);
    case LogFormat::kLongCsv:
      return table_of_long(text);
    case LogFormat::kGpustat:
      return table_of_gpustat(text);
    case LogFormat::kPrometheus:
      return table_of_prometheus(text);
    case LogFormat::kDcgm:
      return table_of_dcgm(text);
    case LogFormat::kPmon:
      return table_of_pmon(text);
    default:
      return table_of_export(text);
  }
}

}  // namespace headroom
