// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "model/explanation.h"
#include "report/live_findings.h"
#include "view/view.h"

namespace headroom::report {

// "headroom.view/1" (docs/json.md), in one line: what can be drawn of a window of a recording, and the words beside it.
// `view` is that of `explanation`. `behind`, `now`: of a recording that goes on, the age of its last reading, and what
// stands at that.
[[nodiscard]] std::string view_json(const Explanation& explanation, const view::View& view, std::optional<Nanos> behind,
                                    const std::vector<StandingFinding>& now);

}  // namespace headroom::report
