// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "run/task_list.h"

namespace headroom::run {

// A batch as a TOML file; docs/batch-files.md is the contract. `path` is for errors, and relative paths of env_file and
// working_directory start from its folder. Names in `after` are not resolved here (order.h, plan_tasks).
[[nodiscard]] Result<TaskSet> tasks_from_toml(std::string_view text, const std::string& path, const FileReader& read);

// Any task file by its name: .toml, .jsonl, .csv, .tsv; everything else is lines of commands. For a TOML file only
// `read` counts; options of a list do not apply to it.
[[nodiscard]] Result<TaskSet> read_task_file(const std::string& path, ListOptions options);

}  // namespace headroom::run
