// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "model/plan.h"
#include "plan/plan.h"
#include "plan/step_model.h"

namespace headroom::planning {

// How many times faster the loop was with a change, in runs that took turns.
struct MeasuredChange {
  double low = 1, high = 1;
};

// An option before it has its place: what the simulation makes of it.
struct Candidate {
  Option option;
  Change change;               // with the most that it may do
  double least = 0;            // of what it saves at most, the share that is promised
  std::optional<double> seen;  // seconds of which that share is, where it is less: what its finding claims
  double probability = 0;      // that its cause is the one
  double surely = 0;           // that one of its finding's causes is
  double cost = 0;             // of its finding, as a share of all GPU time
  Effort effort = Effort::kArgument;
  bool asked = false;                      // somebody wants to know about it
  std::optional<MeasuredChange> measured;  // by a probe
  std::string look;                        // of one cause of a set: what shows whether it is that
  std::string flipped;                     // the observation that would show it to be for the wrong cause
};

// Of each finding the fixes of its cause, or of its likeliest causes; what was asked about; and the cheapest
// observation for findings that are sets.
[[nodiscard]] std::vector<Candidate> candidates(const Explanation& e, const StepModel& model,
                                                const PlanRequest& request);

}  // namespace headroom::planning
