// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include "model/finding.h"

namespace headroom {

// Whether a cause is among those that a finding leaves open ...
[[nodiscard]] inline bool may_be(const Finding& finding, Cause cause) {
  return std::find(finding.candidates.begin(), finding.candidates.end(), cause) != finding.candidates.end();
}

// ... or is the one that it has.
[[nodiscard]] inline bool names(const Finding& finding, Cause cause) {
  return finding.cause == cause || may_be(finding, cause);
}

// The cause that it has, or the likeliest of those that it leaves open.
[[nodiscard]] inline bool is_likeliest(const Finding& finding, Cause cause) {
  return finding.cause == cause || (!finding.candidates.empty() && finding.candidates.front() == cause);
}

}  // namespace headroom
