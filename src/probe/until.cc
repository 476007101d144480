// SPDX-License-Identifier: Apache-2.0
#include "probe/until.h"

#include <algorithm>

namespace headroom::probe {

namespace {

// Of lowered clocks because more pairs may show them on the other side, too.
bool more_may_mend(CompareReason reason) {
  return reason == CompareReason::kTooFewRepeats || reason == CompareReason::kThrottled;
}

}  // namespace

Next after_pair(const Comparison& so_far, std::optional<double> half_width) {
  const bool cannot = std::any_of(so_far.reasons.begin(), so_far.reasons.end(), [](const ComparedReason& reason) {
    return reason.refuses && !more_may_mend(reason.reason);
  });
  if (cannot) return Next::kCannot;
  if (!half_width || !so_far.ratio) return Next::kGoOn;
  const Ratio& ratio = *so_far.ratio;
  return (ratio.high - ratio.low) / 2 <= *half_width * ratio.value ? Next::kNarrow : Next::kGoOn;
}

}  // namespace headroom::probe
