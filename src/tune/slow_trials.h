// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "tune/step_model.h"
#include "tune/timeline.h"

namespace headroom::tune {

struct SlowTrial {
  std::size_t trial = 0;  // index into Study::trials
  double seconds = 0, expected = 0;
};

// Finished trials that took far longer than their steps explain, the slowest first: the logarithm of duration over
// expectation lies more than 5 robust standard deviations (median absolute deviation) above the middle, and the
// duration is twice the expectation at least. Without a line a trial is compared with the middle one of its state.
[[nodiscard]] std::vector<SlowTrial> slow_trials(const Study& study, const Timeline& timeline, const StepModel& model);

}  // namespace headroom::tune
