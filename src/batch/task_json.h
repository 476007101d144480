// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/batch.h"

namespace headroom::batch {

// Tasks on one line, for a batch that runs already. Bytes that are no UTF-8 are refused: they would not come back.
[[nodiscard]] Result<std::string> tasks_text(const std::vector<TaskSpec>& tasks);
[[nodiscard]] Result<std::vector<TaskSpec>> tasks_of(std::string_view text);

}  // namespace headroom::batch
