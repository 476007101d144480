// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "tune/parameter_columns.h"
#include "tune/robust_line.h"
#include "tune/timeline.h"

namespace headroom::tune {

// Duration of a trial as start-up plus steps.
struct StepModel {
  std::optional<RobustLine> line;  // over steps, each counted by its `relative` time
  // There is no line, since it surely met zero steps below zero seconds: later steps take longer than the first.
  bool later_longer = false;
  // One per trial: what its parameter makes of a step's time, over the middle trial's; 1 where nothing is known.
  std::vector<double> relative;
  [[nodiscard]] double steps_seconds(const Study& study, std::size_t trial) const {
    return line ? line->slope.value * relative[trial] * static_cast<double>(study.trials[trial].reports) : 0;
  }
};

// By trials that completed or were pruned. A step takes the same in all, or hangs on one parameter: the one that makes
// the durations lie closest to lines within four ranges of it (or its categories), if that is worth it. Lines within
// ranges are not misled where a parameter decides both a step's time and how long trials are let run.
[[nodiscard]] StepModel step_model(const Study& study, const std::vector<ParameterColumn>& columns,
                                   const Timeline& timeline);

// Closer, once first steps are known well: in up to 10 ranges of the parameter (or its categories) the middle time of a
// step, after the first steps that `timeline` has.
[[nodiscard]] StepModel step_model_by(const ParameterColumn& column, const Study& study, const Timeline& timeline);

}  // namespace headroom::tune
