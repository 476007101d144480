// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "compare/reasons.h"

// Whether there are enough runs, or steps of one run each, to tell a difference from noise.
namespace headroom::compare {

inline constexpr std::string_view kCountsSteps = "headroom.step(), or --step REGEX for lines of output,";

struct Enough {
  bool yes = true;
  std::string why_not;  // with figures and what would do; "": another reason says it all
};
[[nodiscard]] Enough enough_of(const Facts& facts);

}  // namespace headroom::compare
