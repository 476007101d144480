// SPDX-License-Identifier: Apache-2.0
#include "batch/add_tasks.h"

#include "batch/task_json.h"

namespace headroom::batch {

Result<std::size_t> add_tasks(std::string_view text, Batch& batch, Journal& journal) {
  HR_TRY(const std::vector<TaskSpec> given, tasks_of(text));
  HR_TRY(Batch::Addition addition, batch.plan_addition(given));
  if (addition.tasks.empty()) return std::size_t{0};
  HR_TRY(const auto known, journal.register_tasks(addition.tasks, Journal::When::kDuringRun));
  const std::size_t count = addition.tasks.size();
  batch.add(std::move(addition), known);
  return count;
}

}  // namespace headroom::batch
