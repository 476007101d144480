// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tasks/task_list.h"
#include "tasks/template_task.h"

namespace headroom::tasks {

// The template that the options make, without a command.
[[nodiscard]] Result<TaskTemplate> template_of(const ListOptions& options);
// With that of --command; kInvalidInput where there is none.
[[nodiscard]] Result<TaskTemplate> template_with_command(const ListOptions& options);
// "params.csv:3"
[[nodiscard]] std::string line_of(const ListOptions& options, std::size_t line);
// The collected tasks; kInvalidInput where there are none.
[[nodiscard]] Result<TaskSet> set_of(TaskCollector& collector, const ListOptions& options);
// A task per value, which is {} of the command.
[[nodiscard]] Result<TaskSet> tasks_from_values(const std::vector<std::string>& command,
                                                std::vector<std::string> values, const ListOptions& options);
// Reads each file once.
[[nodiscard]] EnvironmentReader cached_environments(FileReader read);
[[nodiscard]] Result<void> check_parameter_name(std::string_view name);

[[nodiscard]] tl::unexpected<Error> too_many_parameters();

}  // namespace headroom::tasks
