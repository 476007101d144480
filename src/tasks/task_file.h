// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "tasks/task_list.h"

namespace headroom::tasks {

// A batch as a TOML file; docs/batch-files.md is the contract. `path` is for errors, and relative paths of env_file and
// working_directory start from its folder. Names in `after` are not resolved here (order.h, plan_tasks).
[[nodiscard]] Result<TaskSet> tasks_from_toml(std::string_view text, const std::string& path, const FileReader& read);

// Any task file by its name: .toml, .jsonl, .csv, .tsv; everything else is lines of commands. `read` of the options
// reads it, and what it names; for a TOML file the other options do not count.
[[nodiscard]] Result<TaskSet> read_task_file(const std::string& path, ListOptions options);

}  // namespace headroom::tasks
