// SPDX-License-Identifier: Apache-2.0
// What `nvidia-smi -q` writes for people, again and again: sections by indentation, "Key : value" below them.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/strings.h"
#include "import/log_reader.h"
#include "import/table.h"

namespace headroom {

namespace {

struct QueryColumn {
  std::string_view section, key, column;
};
// Drivers up to 525 say "Power Readings", later ones "GPU Power Readings" and "Average Power Draw".
constexpr std::array kQueryColumns{
    QueryColumn{"", "Product Name", "name"},
    QueryColumn{"", "GPU UUID", "uuid"},
    QueryColumn{"", "Performance State", "pstate"},
    QueryColumn{"", "Fan Speed", "fan.speed"},
    QueryColumn{"FB Memory Usage", "Total", "memory.total"},
    QueryColumn{"FB Memory Usage", "Reserved", "memory.reserved"},
    QueryColumn{"FB Memory Usage", "Used", "memory.used"},
    QueryColumn{"Reasons", "SW Power Cap", "clocks_event_reasons.sw_power_cap"},
    QueryColumn{"Reasons", "HW Slowdown", "clocks_event_reasons.hw_slowdown"},
    QueryColumn{"Reasons", "HW Thermal Slowdown", "clocks_event_reasons.hw_thermal_slowdown"},
    QueryColumn{"Reasons", "HW Power Brake Slowdown", "clocks_event_reasons.hw_power_brake_slowdown"},
    QueryColumn{"Reasons", "Sync Boost", "clocks_event_reasons.sync_boost"},
    QueryColumn{"Reasons", "SW Thermal Slowdown", "clocks_event_reasons.sw_thermal_slowdown"},
    QueryColumn{"Utilization", "Gpu", "utilization.gpu"},
    QueryColumn{"Utilization", "GPU", "utilization.gpu"},
    QueryColumn{"Utilization", "Memory", "utilization.memory"},
    QueryColumn{"Utilization", "Encoder", "utilization.encoder"},
    QueryColumn{"Utilization", "Decoder", "utilization.decoder"},
    QueryColumn{"Temperature", "GPU Current Temp", "temperature.gpu"},
    QueryColumn{"Temperature", "Memory Current Temp", "temperature.memory"},
    QueryColumn{"Power Readings", "Power Draw", "power.draw"},
    QueryColumn{"Power Readings", "Enforced Power Limit", "enforced.power.limit"},
    QueryColumn{"GPU Power Readings", "Power Draw", "power.draw"},
    QueryColumn{"GPU Power Readings", "Average Power Draw", "power.draw"},
    QueryColumn{"GPU Power Readings", "Instantaneous Power Draw", "power.draw.instant"},
    QueryColumn{"GPU Power Readings", "Current Power Limit", "enforced.power.limit"},
    QueryColumn{"Clocks", "SM", "clocks.sm"},
    QueryColumn{"Clocks", "Memory", "clocks.mem"},
    QueryColumn{"Max Clocks", "SM", "clocks.max.sm"},
};

std::string_view query_column(std::string_view section, std::string_view key) {
  if (section == "Clocks Event Reasons" || section == "Clocks Throttle Reasons") section = "Reasons";
  const auto known = std::find_if(kQueryColumns.begin(), kQueryColumns.end(),
                                  [&](const QueryColumn& c) { return c.section == section && c.key == key; });
  return known == kQueryColumns.end() ? "" : known->column;
}

}  // namespace

Result<LogTable> table_of_smi_query(std::string_view text) {
  constexpr std::size_t kOfGpu = 4, kOfSection = 8, kBelow = 12;  // blanks before a line
  LogTable table;
  LogTable::Row gpu;
  std::string time, section, pid, type;
  NamedProcesses processes;
  int gpus = 0;  // of an answer
  const auto finish = [&] {
    const bool read = gpu.size() > 1 + gpu.count("timestamp");
    if (read) table.add(gpu);
    gpu.clear();
  };
  LineCursor lines(text);
  while (lines.next()) {
    const std::string_view line = lines.line(), words = trim(line);
    if (words.empty()) continue;
    const std::size_t indent = line.find_first_not_of(' ');
    const auto colon = words.find(" : ");
    const std::string_view key = trim(words.substr(0, colon));
    const std::string_view value = colon == std::string_view::npos ? "" : trim(words.substr(colon + 3));
    if (indent < kOfGpu) {
      finish();
      section.clear();
      if (key == "Timestamp") time = value, gpus = 0;
      if (colon != std::string_view::npos || !words.starts_with("GPU ")) continue;
      gpu["pci.bus_id"] = words.substr(4);
      ++gpus;
      if (!time.empty()) gpu["timestamp"] = time;
      continue;
    }
    if (gpu.empty()) continue;
    if (indent == kOfGpu) section = colon == std::string_view::npos ? std::string(words) : std::string();
    if (section == "Processes" && colon != std::string_view::npos) {
      if (key == "Process ID") pid = value;
      if (key == "Type") type = value;
      if (key == "Name") processes.add(std::to_string(gpus - 1), pid, type, value);
      continue;
    }
    const bool of_section = indent == kOfSection || (indent == kBelow && key.starts_with("HW "));
    if (colon == std::string_view::npos || (indent != kOfGpu && !of_section)) continue;
    if (const std::string_view column = query_column(indent == kOfGpu ? "" : section, key); !column.empty())
      gpu[std::string(column)] = value;
  }
  finish();
  if (table.empty())
    return fail(Errc::kInvalidInput, "no reading of a GPU in what nvidia-smi -q wrote",
                "nvidia-smi -q -d UTILIZATION,MEMORY,POWER,CLOCK,TEMPERATURE -l 1 > gpu.txt");
  if (std::string named = processes.words(); !named.empty()) table.extra.emplace(kNamedProcesses, std::move(named));
  return table;
}

}  // namespace headroom
