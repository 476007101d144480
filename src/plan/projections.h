// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/plan.h"
#include "plan/plan.h"

namespace headroom::planning {

// What is left, an epoch, a run and a sweep as ranges: by the gain of all options, and where somebody asked about some
// of them and these gain less, first by the gain of those.
struct Projected {
  Gain asked, all;
};
[[nodiscard]] std::vector<Projection> projections(const Explanation& e, const PlanRequest& request,
                                                  const Projected& gains);

}  // namespace headroom::planning
