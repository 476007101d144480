// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "tune/study_model.h"

namespace headroom::tune {

// What the replays under the study's own settings must give back, on average over the seeds; docs/design/0017.
inline constexpr double kSameEnds = 0.9;        // share of the trials that end as they did, after as many reports
inline constexpr double kStepsTolerance = 0.1;  // of the steps of all trials together
inline constexpr double kTimeTolerance = 0.1;   // of the time that the study took

// `outcomes`: one per seed, of the trials in the order of the study.
[[nodiscard]] Calibration calibrate(const StudyModel& model, const std::vector<ReplayOutcome>& outcomes);

// From the values of the seeds: the middle one, and the range of nine out of ten.
[[nodiscard]] Estimate estimate_of(std::vector<double> values);

}  // namespace headroom::tune
