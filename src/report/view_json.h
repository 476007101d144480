// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "model/explanation.h"
#include "view/view.h"

namespace headroom::report {

// "headroom.view/1" (docs/json.md), in one line: what can be drawn of a window of a recording, and the words beside it.
// `view` is that of `explanation`. `behind`: the age of the last reading of a recording that goes on.
[[nodiscard]] std::string view_json(const Explanation& explanation, const view::View& view,
                                    std::optional<Nanos> behind);

}  // namespace headroom::report
