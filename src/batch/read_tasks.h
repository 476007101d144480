// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "batch/request.h"
#include "tasks/task_list.h"

namespace headroom::batch {

// Tasks from a file, standard input or a command line with ":::"; identities are set.
[[nodiscard]] Result<tasks::TaskSet> read_tasks(const Request& request);

// Tasks run on slots. kInvalidInput: one names its GPU, which would be filled in with nothing.
[[nodiscard]] Result<void> leave_gpus_alone(std::vector<TaskSpec>& tasks, const std::string& why);

}  // namespace headroom::batch
