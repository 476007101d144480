// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include "base/result.h"
#include "batch/batch.h"
#include "batch/journal.h"

namespace headroom::batch {

// Puts further tasks, as tasks_text() writes them, into a batch that runs: into its journal first. How many; those that
// it has already are left out. Nothing is added where one of them does not fit.
[[nodiscard]] Result<std::size_t> add_tasks(std::string_view text, Batch& batch, Journal& journal);

}  // namespace headroom::batch
