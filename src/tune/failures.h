// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "model/study_report.h"
#include "tune/parameter_columns.h"
#include "tune/study_options.h"

namespace headroom::tune {

// Failed trials by where they lie: regions of up to three parameters in which so many more of the finished trials
// failed than elsewhere that chance gives it once in 100 studies (hypergeometric, times the regions tried); a stretch
// of the study ("from trial 6 on") is such a region, of the order of the trials, and so is a worker, where the storage
// knows several; a point that was tried several times and failed each time; then those that lie in none, by whether
// they reported a step. `measured`: what a recording tells of them, by number. Of more than 20 trials a group lists the
// first and the last one.
[[nodiscard]] std::vector<FailureGroup> failure_groups(const Study& study, const std::vector<ParameterColumn>& columns,
                                                       const std::map<std::int64_t, TrialMeasured>& measured = {});
// The failed trials from one on to the end of the study, where hardly another trial is among them; nullptr: none.
[[nodiscard]] const FailureGroup* failing_since(const std::vector<FailureGroup>& groups);
// The same of trials after which others succeeded: each such stretch, in the order of the study.
[[nodiscard]] std::vector<const FailureGroup*> failing_for_a_time(const std::vector<FailureGroup>& groups);
// The same of one worker's trials.
[[nodiscard]] const FailureGroup* failing_worker(const std::vector<FailureGroup>& groups);

}  // namespace headroom::tune
