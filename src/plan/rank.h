// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/plan.h"
#include "plan/candidates.h"
#include "plan/step_model.h"

namespace headroom::planning {

// Gains of each candidate alone, by simulation; those that bring nothing are left out, unless somebody asked.
void give_gains(const StepModel& model, std::vector<Candidate>& candidates);

// What somebody asked about, then the changes for one finding behind those for another that costs more, as it is
// expected: none for a start above those for what costs more. Findings whose cause is told and bounded by no gain go by
// their cost. Of one finding, by the expected share of the time that each saves, less its risk and effort. An
// observation goes first where the first change is for one of several causes.
void rank(std::vector<Candidate>& candidates);

// In their order the first one, then with each further one that saves something of what is left, re-simulated. Of one
// set of causes no more than one change.
[[nodiscard]] std::vector<OptionsTogether> together(const StepModel& model, const std::vector<Candidate>& candidates);

// All that somebody asked about, simulated together; all that promises something where nobody asked.
[[nodiscard]] Gain gain_of_all(const StepModel& model, const std::vector<Candidate>& candidates);
[[nodiscard]] Gain gain_of_asked(const StepModel& model, const std::vector<Candidate>& candidates);

// The observation after which the second change would stand before the first; "" where there are not two.
[[nodiscard]] std::string what_flips(const std::vector<Candidate>& candidates);

}  // namespace headroom::planning
