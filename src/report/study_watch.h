// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/study_report.h"
#include "report/layout.h"

// What `headroom study --watch` shows of a study that runs, from its facts alone.
namespace headroom::report {

// How it goes now: trials open, finished per hour and pruned of them over the last half hour, the best value.
[[nodiscard]] std::string watch_rate(const StudyReport& now);

// What happened between two looks at one study, the best value first: a phrase for each of a few trials, else counts.
// Empty: nothing.
[[nodiscard]] std::vector<std::string> watch_changes(const StudyReport& before, const StudyReport& now);

// A picture for a terminal: the states, the rate, the trials that are open, and `happened`, the last few lines of it.
[[nodiscard]] std::string watch_picture(const StudyReport& now, const std::vector<std::string>& happened,
                                        const TextOptions& options);

}  // namespace headroom::report
