// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "model/batch.h"
#include "run/task_list.h"

namespace headroom::cli {

// Hashes of a task's input files, as they are when an attempt starts.
[[nodiscard]] std::function<std::vector<std::pair<std::string, std::string>>(const TaskSpec&)> input_hasher(
    std::string start_directory);

// Fills in metrics and resolved parameters of an attempt from the end of its log; the last match counts.
[[nodiscard]] std::function<void(Attempt&)> log_inspector(const std::vector<run::LogPattern>& patterns);

}  // namespace headroom::cli
