// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>
#include <vector>

#include "base/result.h"
#include "batch/batch.h"
#include "batch/journal.h"

namespace headroom::batch {

// Puts further tasks, as tasks_text() writes them, into a batch that runs: into its journal first. How many; those that
// it has already are left out. Nothing is added where one of them does not fit.
[[nodiscard]] Result<std::size_t> add_tasks(std::string_view text, Batch& batch, Journal& journal);
[[nodiscard]] Result<std::size_t> add_tasks(const std::vector<TaskSpec>& given, Batch& batch, Journal& journal);

// A value after ::: is a parameter called "1", "2" and so on. In `added`, one that the command gives to an option gets
// that option's name, if a task of `batch` has a parameter of this name: `table` then has one column for both.
void name_parameters(const std::vector<TaskSpec>& batch, std::vector<TaskSpec>& added);

}  // namespace headroom::batch
