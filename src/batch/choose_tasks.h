// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "model/batch.h"

namespace headroom::batch {

// The tasks of these names, or that match these patterns of a shell (* ? [abc]), in their order. A name that exists is
// no pattern. kNotFound: one names none.
[[nodiscard]] Result<std::vector<TaskIndex>> tasks_named(const std::vector<TaskSpec>& tasks,
                                                         const std::vector<std::string>& patterns);

// Takes the others out, but for what those come after.
[[nodiscard]] Result<void> keep_only(std::vector<TaskSpec>& tasks, const std::vector<std::string>& patterns);

}  // namespace headroom::batch
