// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tune/step_model.h"

namespace headroom::tune {

// Start-up inside trials: as measured, else what the line leaves for no step. `between_seconds` and `share` are absent.
[[nodiscard]] StartupFacts startup_inside(const Study& study, const StudyOptions& options, const StepModel& model,
                                          const Timeline& timeline);

// Puts the first step of each trial.
void place_first_steps(const Study& study, const StudyOptions& options, const StartupFacts& startup,
                       Timeline& timeline);

}  // namespace headroom::tune
