// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "model/explanation.h"
#include "report/live_findings.h"
#include "view/view.h"

namespace headroom::report {

// One picture of `headroom top`, schema headroom.top/1: what the GPUs did in the window that was explained, and what
// was there at its end. `behind`, `now`: of a recording that goes on, the age of its last reading, and what stands at
// that.
[[nodiscard]] std::string top_json(const Explanation& explanation, const view::View& view, std::optional<Nanos> behind,
                                   const std::vector<StandingFinding>& now);

}  // namespace headroom::report
