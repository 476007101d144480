// SPDX-License-Identifier: Apache-2.0
#include "import/table.h"
#include "import/unknown_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "import/log_reader.h"

namespace headroom {

void put_quoted(std::string_view cell, std::string& text) {
  if (cell.find_first_of(",\"\r\n") == std::string_view::npos) {
    text += cell;
    return;
  }
  text += '"';
  for (const char c : cell) {
    if (c == '"') text += '"';
    text += c == '\n' || c == '\r' ? ' ' : c;
  }
  text += '"';
}

namespace {

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
    DcgmField{"DCGM_FI_DEV_FB_FREE", "FBFRE", "memory.free"},
    DcgmField{"DCGM_FI_DEV_FB_RESERVED", "FBRSV", "memory.reserved"},
    DcgmField{"DCGM_FI_DEV_POWER_USAGE", "POWER", "power.draw"},
    DcgmField{"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "EPLIM", "enforced.power.limit"},
    DcgmField{"DCGM_FI_DEV_POWER_MGMT_LIMIT", "PMLIM", "power.limit"},
    DcgmField{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "TOTEC", "total_energy_consumption"},
    DcgmField{"DCGM_FI_DEV_GPU_TEMP", "TMPTR", "temperature.gpu"},
    DcgmField{"DCGM_FI_DEV_MEMORY_TEMP", "MMTMP", "temperature.memory"},
    DcgmField{"DCGM_FI_DEV_SM_CLOCK", "SMCLK", "clocks.sm"},
    DcgmField{"DCGM_FI_DEV_MEM_CLOCK", "MMCLK", "clocks.mem"},
    DcgmField{"DCGM_FI_DEV_MAX_SM_CLOCK", "DCGM_FI_DEV_MAX_SM_CLOCK", "clocks.max.sm"},
    DcgmField{"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "DVCCTR", "clocks_event_reasons.active"},
    DcgmField{"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DVCCTR", "clocks_event_reasons.active"},
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

void LogTable::Line::put(std::size_t column, std::string_view cell) {
  text_ += cell;
  ends_.emplace_back(column, text_.size());
}

std::optional<std::string_view> LogTable::Line::find(std::size_t column) const {
  std::size_t begin = 0;
  for (const auto& [number, end] : ends_) {
    if (number == column) return std::string_view(text_).substr(begin, end - begin);
    begin = end;
  }
  return std::nullopt;
}

std::size_t LogTable::column(std::string_view name) {
  const auto known = columns_.find(name);
  return known != columns_.end() ? known->second : columns_.emplace(name, columns_.size()).first->second;
}

void LogTable::add(const Line& line) {
  text_ += line.text_;
  std::size_t begin = 0;
  for (const auto& [column, end] : line.ends_) {
    cells_.push_back({static_cast<std::uint32_t>(column), static_cast<std::uint32_t>(end - begin)});
    begin = end;
  }
  rows_.push_back(cells_.size());
}

void LogTable::add(const Row& row) {
  Line line;
  for (const auto& [name, cell] : row) line.put(column(name), cell);
  add(line);
}

std::string LogTable::csv() const {
  std::vector<bool> used(columns_.size());
  for (const Cell& cell : cells_) used[cell.column] = true;
  std::string text;
  text.reserve(text_.size() + rows_.size() * (columns_.size() + 1));
  std::vector<std::size_t> order;
  for (const auto& [name, number] : columns_) {
    if (!used[number]) continue;
    if (!order.empty()) text += ',';
    text += name;
    order.push_back(number);
  }
  text += '\n';
  std::vector<std::string_view> row(columns_.size());
  std::size_t cell = 0;
  std::string_view rest = text_;
  for (const std::size_t end : rows_) {
    std::fill(row.begin(), row.end(), std::string_view());
    for (; cell < end; ++cell) {
      row[cells_[cell].column] = rest.substr(0, cells_[cell].size);
      rest.remove_prefix(cells_[cell].size);
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i > 0) text += ',';
      put_quoted(row[order[i]], text);
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

bool is_annotation(std::string_view line) {
  line = trim(line);
  return line.starts_with("#group,") || line.starts_with("#datatype,") || line.starts_with("#default,");
}

std::string_view without_annotations(std::string_view text) {
  LineCursor lines(text);
  while (lines.next())
    if (const auto line = trim(lines.line()); !line.empty() && !is_annotation(line)) return line;
  return "";
}

namespace {

// What the beginning of a log holds that is no table; `header`: its first line, too. The first that fits counts.
struct LogSign {
  LogFormat format;
  std::string_view words, header{};
};
constexpr std::array kLogSigns{
    LogSign{LogFormat::kSmiText, "| NVIDIA-SMI "},
    LogSign{LogFormat::kSmiText, "NVITOP "},
    LogSign{LogFormat::kSmiText, kGputilHeader},
    LogSign{LogFormat::kRocmText, "ROCm System Management Interface"},
    LogSign{LogFormat::kSmiQuery, "==NVSMI LOG=="},
    LogSign{LogFormat::kTegrastats, " GR3D_FREQ "},
    LogSign{LogFormat::kPowermetrics, "*** Sampled system activity ("},
    LogSign{LogFormat::kRadeontop, "%, vgt "},
    LogSign{LogFormat::kTypeperf, "(PDH-CSV 4.0)", "\\GPU Engine("},
    LogSign{LogFormat::kAfterburner, "Hardware monitoring log v"},
};

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

LogFormat format_of_json(std::string_view head, std::string_view text) {
  const bool exported = trim(head.substr(1)).starts_with("\"metric\"") && holds(head, "\"__name__\"") &&
                        holds(head, "\"values\"");  // of VictoriaMetrics
  if (exported || holds(head, "\"resultType\"")) return LogFormat::kPrometheus;
  const auto gpus = head.find("\"gpus\"");
  const auto list = gpus == std::string_view::npos ? gpus : head.find_first_not_of(": \t\r\n", gpus + 6);
  const bool listed = list != std::string_view::npos && head[list] == '[';
  if (holds(head, "\"query_time\"") || listed) return LogFormat::kGpustat;
  if (are_json_rows(text)) return LogFormat::kJsonRows;
  return are_monitor_lines(text) ? LogFormat::kLines : LogFormat::kUnknown;
}

// "[0] NVIDIA A100 | 71°C,  99 % | …", "… | 242 W | …" with -P
bool is_line_of_gpustat(std::string_view line) {
  constexpr std::size_t kLongestIndex = 4;  // "[127] "
  return line.starts_with('[') && line.find("] ") <= kLongestIndex && (holds(line, " % | ") || holds(line, " W | "));
}

// "# gpu pid", "#gpu, pid,"
bool is_header_of_pmon(std::string_view line) {
  std::string words(line.substr(0, 64));
  std::replace_if(
      words.begin(), words.end(), [](char c) { return c == ',' || c == '#'; }, ' ');
  return line.starts_with('#') && holds(words, " gpu ") && holds(words, " pid ");
}

LogFormat format_by_line(std::string_view line) {
  if (is_reading_of_box(trim(line))) return LogFormat::kSmiText;
  if (is_line_of_gpustat(line)) return LogFormat::kGpustat;
  if (is_amd_header(line)) return LogFormat::kAmdText;
  if (line.starts_with("#Entity") || line.starts_with("# Entity")) return LogFormat::kDcgm;
  return is_header_of_pmon(line) ? LogFormat::kPmon : LogFormat::kUnknown;
}

// By the first line that tells it.
LogFormat format_by_lines(std::string_view head) {
  for (const std::string_view line : split(head, '\n'))
    if (const LogFormat format = format_by_line(line); format != LogFormat::kUnknown) return format;
  return LogFormat::kUnknown;
}

}  // namespace

LogFormat sniff_table(std::string_view text) {
  constexpr std::size_t kHead = 4096;
  const std::string_view head = trim(text.substr(0, kHead));
  if (head.starts_with('<')) return holds(head, "<nvidia_smi_log") ? LogFormat::kSmiXml : LogFormat::kUnknown;
  if (are_promtool_series(text)) return LogFormat::kPrometheus;
  if (head.starts_with('{')) return format_of_json(head, text);
  if (head.starts_with("at_ns,time,source,key")) return LogFormat::kExportCsv;
  if (is_long_table(text) || are_smi_stats(text) || are_graphite_lines(text)) return LogFormat::kLongCsv;
  const std::string_view first = without_annotations(text);
  const auto* const sign = std::find_if(kLogSigns.begin(), kLogSigns.end(), [&](const LogSign& one) {
    return holds(head, one.words) && holds(first, one.header);
  });
  if (sign != kLogSigns.end()) return sign->format;
  if (are_scrapes(text) || (holds(head, "DCGM_FI_DEV_GPU_UTIL{") && !is_csv_header(csv_cells(first))))
    return LogFormat::kScrapes;
  if (holds(head, "{") && are_json_rows(text)) return LogFormat::kJsonRows;
  if (const LogFormat format = format_by_lines(head); format != LogFormat::kUnknown) return format;
  if (are_influx_points(text)) return LogFormat::kInflux;
  const bool lines = are_monitor_lines(text) || (!are_means_of_a_job(head) && are_lines_without_times(text));
  return lines ? LogFormat::kLines : LogFormat::kUnknown;
}

Result<LogTable> table_of(LogFormat format, std::string_view text) {
  switch (format) {
    case LogFormat::kSmiXml:
      return table_of_smi_xml(text);
    case LogFormat::kSmiText:
      return text.find(kGputilHeader) == text.npos ? table_of_smi_text(text) : table_of_gputil(text);
    case LogFormat::kRocmText:
      return table_of_rocm_text(text);
    case LogFormat::kAmdText:
      return table_of_amd_monitor(text);
    case LogFormat::kTegrastats:
      return table_of_tegrastats(text);
    case LogFormat::kPowermetrics:
      return table_of_powermetrics(text);
    case LogFormat::kRadeontop:
      return table_of_radeontop(text);
    case LogFormat::kAfterburner:
      return table_of_afterburner(text);
    case LogFormat::kTypeperf:
      return table_of_typeperf(text);
    case LogFormat::kInflux:
      return table_of_influx(text);
    case LogFormat::kLines:
      return table_of_lines(text);
    case LogFormat::kSmiQuery:
      return table_of_smi_query(text);
    case LogFormat::kScrapes:
      return table_of_scrapes(text);
    case LogFormat::kLongCsv:
      return table_of_long(text);
    case LogFormat::kGpustat:
      return table_of_gpustat(text);
    case LogFormat::kJsonRows:
      return table_of_json_rows(text);
    case LogFormat::kPrometheus:
      return table_of_prometheus(are_promtool_series(text) ? range_of_promtool(text) : std::string(text));
    case LogFormat::kDcgm:
      return table_of_dcgm(text);
    case LogFormat::kPmon:
      return table_of_pmon(text);
    default:
      return table_of_export(text);
  }
}

}  // namespace headroom
