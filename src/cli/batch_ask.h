// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/cli11.h"

namespace headroom::cli {

// Adds `status`, `show`, `table`, `add`, `cancel` and `stop`. What is returned answers, once the command line is
// parsed, with the exit code if one of them was asked for.
[[nodiscard]] std::function<std::optional<int>()> declare_batch_questions(CLI::App& app,
                                                                          const std::vector<std::string>& after_dashes);

// What `headroom batch status --json` prints of the batch in `folder`: its own answer, or what its journal says.
[[nodiscard]] Result<std::string> batch_status_json(const std::string& folder);

}  // namespace headroom::cli
