// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "base/toml_table.h"
#include "tasks/template.h"

namespace headroom::tasks {

// Rows of parameters that belong together: one list of a grid, a whole zip, a whole list of rows.
struct ParameterAxis {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;  // values, in the order of names
};

// The axes of [task.grid], [task.zip] and [[task.list]] in this order. kInvalidInput: empty or unequal lists, a name
// twice, or more than kMostTasks combinations.
[[nodiscard]] Result<std::vector<ParameterAxis>> parameter_axes(const TomlTable& task);
[[nodiscard]] std::size_t combinations(const std::vector<ParameterAxis>& axes);
// The last axis varies fastest.
[[nodiscard]] Parameters combination(const std::vector<ParameterAxis>& axes, std::size_t number);

}  // namespace headroom::tasks
