// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "tune/robust_line.h"
#include "tune/timeline.h"

namespace headroom::tune {

// Duration over steps, of the trials that completed or were pruned.
[[nodiscard]] std::optional<RobustLine> duration_by_steps(const Study& study, const Timeline& timeline);

// Start-up inside trials: as measured, else what the line leaves for no step. `between_seconds` and `share` are absent.
[[nodiscard]] StartupFacts startup_inside(const Study& study, const StudyOptions& options,
                                          const std::optional<RobustLine>& line, const Timeline& timeline);

// Puts the first step of each trial, and the last sign of life of a dead one.
void place_first_steps(const Study& study, const StudyOptions& options, const StartupFacts& startup,
                       const std::optional<RobustLine>& line, Timeline& timeline);
void place_last_signs(const Study& study, const std::optional<RobustLine>& line, Timeline& timeline);

}  // namespace headroom::tune
