// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "import/log_column.h"
#include "import/table.h"

namespace headroom {

// A value of JSON as a cell of a table; "" of an object or a list.
[[nodiscard]] std::string json_cell(const nlohmann::json& value);
// That of the member of this name, "" where there is none.
[[nodiscard]] std::string json_member(const nlohmann::json& object, const char* name);

// {"fields": {…}, "name": "nvidia_smi", "tags": {…}, "timestamp": …}
[[nodiscard]] bool is_of_telegraf(const nlohmann::json& object);

// The members of an object, and of objects in it, as cells: {"gpu": {"util": 88}} is "gpu util".
void put_json_members(const nlohmann::json& object, const std::string& within, LogTable::Row& row);

[[nodiscard]] bool has_role(std::string_view name, ColumnRole role);

}  // namespace headroom
