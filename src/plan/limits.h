// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/explanation.h"
#include "plan/candidates.h"
#include "plan/step_model.h"

namespace headroom::planning {

// Lets a change against one cause of a set save no more than that cause can have cost in its finding and in those where
// it is ended as well, and all of these together no more than it can have cost in the whole run (model/finding.h,
// OwnLimit). Says so where it does.
void keep_within_limits(const Explanation& e, const StepModel& model, Candidate& made);

}  // namespace headroom::planning
