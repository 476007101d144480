// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "export/lanes.h"
#include "model/events.h"

namespace headroom {

// From the start of a task's attempt to its end, or that of the recording where no end is recorded.
struct AttemptSlice {
  events::AttemptStart attempt;
  std::optional<AttemptOutcome> outcome;
  Extent stretch;
};
[[nodiscard]] std::vector<AttemptSlice> attempt_slices(const Recording& recording);

}  // namespace headroom
