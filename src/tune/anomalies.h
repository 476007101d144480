// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "tune/step_model.h"
#include "tune/timeline.h"
#include "tune/workers.h"

namespace headroom::tune {

// What wants an explanation or an action, the most costly first, by worker time. Of the report it reads
// `parallelism` and `worker_time`.
[[nodiscard]] std::vector<StudyAnomaly> anomalies(const Study& study, const StudyOptions& options,
                                                  const Timeline& timeline, const StudyReport& report,
                                                  const StepModel& model);

}  // namespace headroom::tune
