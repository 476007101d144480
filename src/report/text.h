// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "model/explanation.h"
#include "report/layout.h"

namespace headroom::report {

// The report of `headroom why` and of the end of `headroom run`: the answer, the ledger (it always sums), the three
// largest findings, problems, the next step, in line_limit() lines; with options.full all that is known.
[[nodiscard]] std::string to_text(const Explanation& explanation, const TextOptions& options);

// The same from the ledger on, for reports that begin otherwise.
[[nodiscard]] std::string shared_part(const Explanation& explanation, const TextOptions& options, std::size_t lines);

// 40 lines of 80 columns for two GPUs, 50 for more.
[[nodiscard]] std::size_t line_limit(std::size_t devices, const TextOptions& options);

}  // namespace headroom::report
