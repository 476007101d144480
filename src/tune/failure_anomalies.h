// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "model/study_report.h"
#include "tune/timeline.h"

namespace headroom::tune {

struct CostedAnomaly {
  double worker_seconds = 0;
  StudyAnomaly anomaly;
};

// What the groups of failed trials in `report` want somebody to do: regions of the parameters that hardly a trial gets
// out of, failures that lie together in time, a worker that fails.
void add_failures(const Study& study, const Timeline& timeline, const StudyReport& report,
                  std::vector<CostedAnomaly>& found);

}  // namespace headroom::tune
