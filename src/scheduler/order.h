// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/batch.h"
#include "scheduler/planner.h"

namespace headroom::scheduler {

struct TaskPlan {
  std::vector<PlannedTask> tasks;
  std::vector<std::string> groups;  // by GroupIndex, in order of first use
};

// Resolves names: `after` may name tasks and groups. An unknown name is kInvalidInput with a suggestion, a cycle is
// kInvalidInput and names the cycle ("a after b after a"), both with file and line of the task.
// `expected` answers how long a task took in earlier batches (absent: never seen); may be empty.
[[nodiscard]] Result<TaskPlan> plan_tasks(std::span<const TaskSpec> specs,
                                          const std::function<std::optional<Nanos>(const TaskSpec&)>& expected = {});

}  // namespace headroom::scheduler
