// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "fleet/coverage.h"
#include "model/explanation.h"
#include "model/fleet.h"
#include "model/plan.h"
#include "model/recording.h"

namespace headroom::fleet {

// Leaves a plan nothing but what it can say for causes that are told: a finding that is a set promises nothing.
void keep_what_is_told(Explanation& explanation);

// One recorded job, as a row. `told` is the plan of the explanation after keep_what_is_told(). What counts of its GPU
// time is taken from `coverage`.
//
// GPU time could come back by two ways: the job ends sooner (what the plan's changes gain together, of all GPUs that it
// holds), or it lets go of what it does not use (what findings of that claim; nothing is promised of it).
[[nodiscard]] FleetJob job_of(const Recording& recording, const Explanation& explanation, const Plan& told,
                              Coverage& coverage);

}  // namespace headroom::fleet
