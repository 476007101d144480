// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/explanation.h"
#include "plan/candidates.h"
#include "plan/fill.h"
#include "plan/plan.h"
#include "plan/step_model.h"

namespace headroom::planning {

// What the simulation needs of a fix's candidate beside the claims, by how it acts. False: nothing to advise.
[[nodiscard]] bool shape(const Explanation& e, const StepModel& model, const PlanRequest& request, const Numbers& known,
                         Candidate& made);

}  // namespace headroom::planning
