// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "compare/reasons.h"

// More work that was asked for by parameters ("n_estimators", "epochs"), where nothing counts what was done.
namespace headroom::compare {

// That the side with more of it took less time, where no such parameter says less and none that a side may have stopped
// early. Other parameters that differ are named, since they may explain it. Nothing where work is counted, which speaks
// for itself. `ratio`: of the time of whole runs, B/A.
[[nodiscard]] std::optional<std::string> faster_with_more_asked(const Facts& facts, const Ratio& ratio);

}  // namespace headroom::compare
