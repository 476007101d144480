// SPDX-License-Identifier: Apache-2.0
// What typeperf and the performance monitor of Windows write of GPUs: a column for each engine of each process.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/strings.h"
#include "import/log_reader.h"
#include "import/table.h"

namespace headroom {

namespace {

// What a column counts: of which adapter, and of which of its engines; "": its memory.
struct Counter {
  std::string adapter, engine;
};

// \\HOST\GPU Engine(pid_4120_luid_0x0_0xE8C5_phys_0_eng_3_engtype_Compute_0)\Utilization Percentage
// \\HOST\GPU Adapter Memory(luid_0x0_0xE8C5_phys_0)\Dedicated Usage
std::optional<Counter> counter_of(std::string_view name) {
  constexpr std::string_view kEngine = "_eng_";
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  const bool use = has("\\GPU Engine(") && name.ends_with("Utilization Percentage");
  const bool memory = has("\\GPU Adapter Memory(") && name.ends_with("Dedicated Usage");
  const auto adapter = name.find("luid_"), end = name.rfind(')');
  if ((!use && !memory) || adapter == std::string_view::npos || end == std::string_view::npos || end < adapter)
    return std::nullopt;
  const std::string_view inside = name.substr(adapter, end - adapter);
  const auto engine = inside.find(kEngine);
  if (use != (engine != std::string_view::npos)) return std::nullopt;
  return Counter{std::string(inside.substr(0, engine)), std::string(use ? inside.substr(engine + kEngine.size()) : "")};
}

// "+02:00" of "(PDH-CSV 4.0) (W. Europe Daylight Time)(-120)": minutes that UTC is ahead; "" where it is not told.
std::string zone_of(std::string_view head) {
  const auto open = head.rfind('(');
  if (open == std::string_view::npos) return "";
  const auto ahead = parse_number<int>(head.substr(open + 1, head.rfind(')') - open - 1));
  constexpr int kFurthest = 14 * 60;
  if (!ahead || *ahead < -kFurthest || *ahead > kFurthest) return "";
  const int minutes = std::abs(*ahead);
  return fmt::format("{}{:02}:{:02}", *ahead > 0 ? '-' : '+', minutes / 60, minutes % 60);
}

// "10/09/2025 14:00:00.123", the month first in every language, as ISO 8601.
std::string time_of(std::string_view cell, std::string_view zone) {
  constexpr std::size_t kDate = 10;
  if (cell.size() < kDate + 2 || cell[2] != '/' || cell[5] != '/' || cell[kDate] != ' ') return "";
  return fmt::format("{}-{}-{} {}{}", cell.substr(6, 4), cell.substr(0, 2), cell.substr(3, 2), cell.substr(kDate + 1),
                     zone);
}

std::optional<double> value_of(std::string_view cell) {
  std::string number(trim(cell));
  if (const auto comma = number.find(','); comma != std::string::npos) number[comma] = '.';
  return parse_number<double>(number);
}

// "luid_0x0_0xE8C5_phys_0" before "luid_0x0_0x10A3B_phys_0": by their numbers.
struct ByLuid {
  bool operator()(const std::string& a, const std::string& b) const {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  }
};

struct Adapter {
  std::map<std::string, double> engines;  // the sums of their processes
  std::optional<double> memory;
  bool used = false;
};

std::vector<std::optional<Counter>> counters_in(const std::vector<std::string_view>& header) {
  std::vector<std::optional<Counter>> counters(1);  // of the time there is none
  for (std::size_t i = 1; i < header.size(); ++i) counters.push_back(counter_of(header[i]));
  return counters;
}

// What the counters of one moment say, by adapter.
std::map<std::string, Adapter> adapters_in(const std::vector<std::string_view>& cells,
                                           const std::vector<std::optional<Counter>>& counters) {
  std::map<std::string, Adapter> adapters;
  for (std::size_t i = 1; i < cells.size(); ++i) {
    const auto value = counters[i] ? value_of(cells[i]) : std::nullopt;
    if (!value) continue;
    Adapter& adapter = adapters[counters[i]->adapter];
    if (counters[i]->engine.empty())
      adapter.memory = *value;
    else
      adapter.engines[counters[i]->engine] += *value;
    adapter.used |= *value > 0;
  }
  return adapters;
}

// Of an adapter the busiest engine counts, as in the task manager.
double use_of(const Adapter& adapter) {
  const auto busiest = std::max_element(adapter.engines.begin(), adapter.engines.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  return std::min(100.0, busiest->second);
}

struct AdapterReading {
  std::string time, adapter;
  double use = 0;
  std::optional<double> memory;
};

using UsedAdapters = std::set<std::string, ByLuid>;

LogTable table_of_used(const std::vector<AdapterReading>& readings, const UsedAdapters& used) {
  LogTable table;
  for (const AdapterReading& reading : readings) {
    const auto known = used.find(reading.adapter);
    if (known == used.end()) continue;
    LogTable::Row row{{"timestamp", reading.time},
                      {"index", fmt::format("{}", std::distance(used.begin(), known))},
                      {"utilization.gpu", fmt::format("{:.3f}", reading.use)}};
    if (reading.memory) row["memory.used [MiB]"] = fmt::format("{:.3f}", *reading.memory / 1048576);
    table.add(row);
  }
  return table;
}

}  // namespace

// An adapter on which nothing ever runs and that has no memory of its own is no GPU.
Result<LogTable> table_of_typeperf(std::string_view text) {
  std::vector<AdapterReading> readings;
  UsedAdapters used;
  std::vector<std::optional<Counter>> counters;
  std::string zone;
  std::vector<std::string_view> cells;
  LineCursor lines(text);
  while (lines.next()) {
    split_cells(lines.line(), ',', cells);
    if (cells.size() > 1 && cells[0].starts_with("(PDH-CSV")) {
      zone = zone_of(cells[0]);
      counters = counters_in(cells);
      continue;
    }
    const std::string time = time_of(cells[0], zone);
    if (time.empty() || cells.size() != counters.size()) continue;
    for (const auto& [name, adapter] : adapters_in(cells, counters)) {
      if (adapter.used) used.insert(name);
      if (!adapter.engines.empty()) readings.push_back({time, name, use_of(adapter), adapter.memory});
    }
  }
  LogTable table = table_of_used(readings, used);
  if (table.empty())
    return fail(Errc::kInvalidInput, "no counter of a GPU's engine with a value",
                "typeperf \"\\GPU Engine(*)\\Utilization Percentage\" -si 1 -o gpu.csv");
  return table;
}

}  // namespace headroom
