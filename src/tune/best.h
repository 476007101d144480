// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "tune/timeline.h"

namespace headroom::tune {

// COMPLETE, with a value per objective, and no constraint over 0.
[[nodiscard]] bool counts_for_best(const Study& study, const Trial& trial);

// Each time the best value got better; of one objective. The worst infinity is no best value.
[[nodiscard]] std::vector<BestPoint> best_over_time(const Study& study, const Timeline& timeline);

// Numbers of the trials that no other dominates, of several objectives; equal ones are all there. Absent where it would
// take too long to tell, which needs tens of thousands of them, or where a direction is not set.
[[nodiscard]] std::optional<std::vector<std::int64_t>> pareto_front(const Study& study);

}  // namespace headroom::tune
