// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <vector>

#include "model/finding.h"

namespace headroom {

// Whether a cause is among those that a finding leaves open ...
[[nodiscard]] inline bool may_be(const Finding& finding, Cause cause) {
  const auto has = [&](const auto& causes) { return std::find(causes.begin(), causes.end(), cause) != causes.end(); };
  return has(finding.candidates) || has(finding.less_likely);
}

// ... or is the one that it has.
[[nodiscard]] inline bool names(const Finding& finding, Cause cause) {
  return finding.cause == cause || may_be(finding, cause);
}

// The cause that it has, or the likeliest of those that it leaves open.
[[nodiscard]] inline bool is_likeliest(const Finding& finding, Cause cause) {
  return finding.cause == cause || (!finding.candidates.empty() && finding.candidates.front() == cause);
}

// Whether it has one cause and leaves no other open.
[[nodiscard]] inline bool is_settled(const Finding& finding) { return finding.cause && finding.less_likely.empty(); }

// All that it may have, the likeliest first; one where it is settled.
[[nodiscard]] inline std::vector<Cause> possible_causes(const Finding& finding) {
  std::vector<Cause> causes = finding.candidates;
  if (finding.cause) causes.push_back(*finding.cause);
  causes.insert(causes.end(), finding.less_likely.begin(), finding.less_likely.end());
  return causes;
}

}  // namespace headroom
