// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "model/explanation.h"
#include "report/layout.h"

namespace headroom::report {

// The report of `headroom why` and of the end of `headroom run`: the answer, the ledger (it always sums), the phases,
// the findings with their evidence, the statistics, what recording cost and what it could not see.
[[nodiscard]] std::string to_text(const Explanation& explanation, const TextOptions& options);

}  // namespace headroom::report
