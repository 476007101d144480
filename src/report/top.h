// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "model/explanation.h"
#include "view/view.h"

namespace headroom::report {

// One picture of `headroom top`, schema headroom.top/1: what the GPUs did in the window that was explained, and what
// was there at its end. `behind`: the age of the last reading of a recording that goes on.
[[nodiscard]] std::string top_json(const Explanation& explanation, const view::View& view, std::optional<Nanos> behind);

}  // namespace headroom::report
