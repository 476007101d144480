// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/recording.h"

// What a recording keeps of its job's environment: variables that change how a program runs on CPUs and GPUs, from a
// list that docs/privacy.md has, too. All others are left alone.
namespace headroom {

[[nodiscard]] bool is_job_variable(std::string_view name);
// Whether it says where a process runs and not how: which GPU, which rank. It differs between runs of one program.
[[nodiscard]] bool is_placement(std::string_view name);

using JobVariables = std::vector<std::pair<std::string, std::string>>;  // by name
void keep_job_variables(const JobVariables& variables, RecordingMeta& meta);
// Nothing: they were not recorded.
[[nodiscard]] std::optional<JobVariables> job_variables(const RecordingMeta& meta);

}  // namespace headroom
