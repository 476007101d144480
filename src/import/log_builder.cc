// SPDX-License-Identifier: Apache-2.0
#include "import/log_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"

namespace headroom {

void pad(PackedColumn& column, std::size_t rows) {
  const std::size_t old = column.values.size();
  if (old == rows) return;
  if (column.absent.empty()) column.absent.assign(old, 0);
  column.values.resize(rows, 0);
  column.absent.resize(rows, static_cast<std::uint8_t>(Absent::kNotSampled));
}

namespace {

// The cell of a row behind all that `column` has.
void put(PackedColumn& column, std::size_t row, const CellValue& value) {
  if (column.values.size() != row) pad(column, row);
  column.values.push_back(value.absent ? 0 : value.value);
  if (value.absent && column.absent.empty()) column.absent.assign(row, 0);
  if (value.absent || !column.absent.empty()) column.absent.push_back(value.absent);
}

// "3", "GPU 3", "cuda:3": the number at the end.
int trailing_number(std::string_view text, int otherwise) {
  std::size_t begin = text.size();
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  return parse_number<int>(text.substr(begin)).value_or(otherwise);
}

bool is_uuid(std::string_view text) { return text.starts_with("GPU-") || text.starts_with("MIG-"); }

std::string on_off(std::string_view text) {
  return text == "Enabled" ? "on" : text == "Disabled" ? "off" : std::string();
}

std::string snake(std::string_view text) {
  std::string name = lower(text);
  for (char& c : name)
    if (c == ' ') c = '_';
  return name;
}

void set_fact(Device& device, DeviceFact fact, std::string_view text, std::int64_t number) {
  switch (fact) {
    case DeviceFact::kName:
      device.name = text;
      break;
    case DeviceFact::kMemoryTotal:
      device.memory_total_bytes = number;
      break;
    case DeviceFact::kDriverVersion:
      device.driver_version = text;
      break;
    case DeviceFact::kComputeCapability:
      device.compute_capability = text;
      break;
    case DeviceFact::kComputeMode:
      device.compute_mode = snake(text);
      break;
    case DeviceFact::kPersistenceMode:
      device.persistence_mode = on_off(text);
      break;
    case DeviceFact::kMigMode:
      device.mig_mode = lower(text);
      break;
    case DeviceFact::kSmClockMax:
      device.sm_clock_max_mhz = number;
      break;
    case DeviceFact::kPcieLinkGenMax:
      device.pcie_link_gen_max = static_cast<int>(number);
      break;
    case DeviceFact::kPcieLinkWidthMax:
      device.pcie_link_width_max = static_cast<int>(number);
      break;
    case DeviceFact::kCount:
      break;
  }
}

bool is_number_fact(DeviceFact fact) {
  return fact == DeviceFact::kMemoryTotal || fact == DeviceFact::kSmClockMax || fact == DeviceFact::kPcieLinkGenMax ||
         fact == DeviceFact::kPcieLinkWidthMax;
}

}  // namespace

PackedColumn* GpuLog::column(Metric metric) {
  const auto found =
      std::find_if(columns.begin(), columns.end(), [&](const PackedColumn& c) { return c.metric == metric; });
  return found == columns.end() ? nullptr : &*found;
}

std::size_t LogBuilder::slot(Metric metric) {
  for (std::size_t i = 0; i < data_.slots.size(); ++i)
    if (data_.slots[i] == metric) return i;
  data_.slots.push_back(metric);
  return data_.slots.size() - 1;
}

std::size_t LogBuilder::gpu(std::string_view identity, std::string_view uuid, std::string_view index,
                            std::string_view host) {
  const std::size_t count = data_.gpus.size();
  for (std::size_t step = 0; step < count; ++step) {  // the next one is the likeliest: rows come in rounds
    const std::size_t i = (last_gpu_ + 1 + step) % count;
    if (data_.gpus[i].identity == identity && (data_.gpus[i].host == host || is_uuid(identity))) return last_gpu_ = i;
  }
  if (count >= kMostGpus) return kTooMany;
  GpuLog gpu;
  gpu.identity = identity;
  gpu.host = host;
  if (uuid.empty() && is_uuid(identity)) uuid = identity;
  gpu.has_index = !index.empty() && !is_uuid(index);
  gpu.device.index = gpu.has_index ? trailing_number(index, static_cast<int>(count)) : static_cast<int>(count);
  const auto is_taken = [&](int number) {
    return std::any_of(data_.gpus.begin(), data_.gpus.end(),
                       [&](const GpuLog& other) { return other.host != host && other.device.index == number; });
  };
  while (is_taken(gpu.device.index)) gpu.device.index = std::max(gpu.device.index + 1, static_cast<int>(count));
  gpu.device.uuid = uuid;
  gpu.key = uuid.empty() ? fmt::format("gpu{}", gpu.device.index) : std::string(uuid);
  data_.gpus.push_back(std::move(gpu));
  return last_gpu_ = count;
}

void LogBuilder::row(std::size_t gpu, Nanos at, std::uint32_t line) {
  gpu_ = gpu;
  GpuLog& log = data_.gpus[gpu];
  log.at.push_back(at);
  log.lines.push_back(line);
  ++rows_;
}

void LogBuilder::cell(std::size_t slot, const CellValue& value) {
  GpuLog& log = data_.gpus[gpu_];
  while (log.columns.size() <= slot) log.columns.push_back({data_.slots[log.columns.size()], {}, {}});
  put(log.columns[slot], log.at.size() - 1, value);
}

void LogBuilder::free_memory(const CellValue& value) {
  GpuLog& log = data_.gpus[gpu_];
  put(log.free_memory, log.at.size() - 1, value);
}

void LogBuilder::phase(std::string_view name, std::uint32_t line) {
  if (absence_of(name)) name = {};
  if (data_.phases.size() > LogData::kMostPhases || (!data_.phases.empty() && data_.phases.back().name == name)) return;
  data_.phases.push_back({line, std::string(name)});
}

namespace {
// "gpu_stats", "nvidia_smi": a measurement of InfluxDB, and no name of a GPU.
bool is_identifier(std::string_view text) {
  return text.find('_') != std::string_view::npos &&
         std::all_of(text.begin(), text.end(), [](char c) { return c == '_' || (c >= 'a' && c <= 'z'); });
}
}  // namespace

void LogBuilder::fact(const ColumnRule& rule, std::string_view text) {
  GpuLog& log = data_.gpus[gpu_];
  std::string& last = log.facts[static_cast<std::size_t>(rule.fact)];
  if (last == text || absence_of(text)) return;
  if (rule.fact == DeviceFact::kName && is_identifier(text)) return;
  ColumnRule copy = rule;
  CellValue value;
  if (is_number_fact(rule.fact)) value = read_cell(text, copy);
  if (value.absent) {
    data_.losses.add(LossKind::kUnreadableValue, 1,
                     [&] { return fmt::format("first at line {}: '{}'", log.lines.back(), text); });
    return;
  }
  if (!last.empty())
    data_.losses.add(LossKind::kChangedFact, 1, [&] {
      return fmt::format("first at line {}: '{}' was '{}' before; the later one is kept", log.lines.back(), text, last);
    });
  last = text;
  set_fact(log.device, rule.fact, text, value.value);
}

}  // namespace headroom
