// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/plan.h"
#include "plan/plan.h"

namespace headroom::planning {

// What is left, an epoch, a run and a sweep as ranges by `gain`; `with`: what that is the gain of.
[[nodiscard]] std::vector<Projection> projections(const Explanation& e, const PlanRequest& request, const Gain& gain,
                                                  const std::string& with);

}  // namespace headroom::planning
