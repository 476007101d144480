// SPDX-License-Identifier: Apache-2.0
#include "import/json_members.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/strings.h"

namespace headroom {

std::string json_cell(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number() || value.is_null() ? json_text(value) : "";
}

std::string json_member(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? "" : json_cell(*found);
}

bool has_role(std::string_view name, ColumnRole role) {
  const auto rule = csv_column(name);
  return rule && rule->role == role;
}

// {"fields": {…}, "name": "nvidia_smi", "tags": {…}, "timestamp": …}
bool is_of_telegraf(const nlohmann::json& object) {
  const auto has = [&](const char* name) { return object.contains(name) && object[name].is_object(); };
  return has("fields") && has("tags") && object.contains("timestamp");
}

void put_json_members(const nlohmann::json& object, const std::string& within, LogTable::Row& row) {
  constexpr std::size_t kLongest = 128;
  // nvtop calls its share of memory in use "mem_util"; of how many bytes it does not say.
  const std::string memory_in_use = "mem_util of nvtop";
  const bool nvtop = object.contains("gpu_clock") && object.contains("mem_util") && object.contains("device_name");
  if (is_of_telegraf(object)) {
    row["timestamp"] = json_member(object, "timestamp");
    put_json_members(object["tags"], "", row);
    return put_json_members(object["fields"], "", row);
  }
  for (const auto& [name, value] : object.items()) {
    const std::string column = within.empty() ? name : fmt::format("{} {}", within, name);
    if (value.is_object() && column.size() < kLongest)
      put_json_members(value, column, row);
    else if (!value.is_structured())
      row[nvtop && name == "mem_util" ? memory_in_use : column] = value.is_null() ? "" : json_cell(value);
  }
}

}  // namespace headroom
