// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/study_report.h"
#include "tune/study_options.h"

namespace headroom::tune {

// Replays the study under its own settings and under changes to them, and adds `calibration`, `as_it_is`, `what_if` and
// `assumptions` to its facts. Where the replay does not give the study back, or too little is known for one, there is
// no what-if and `calibration.why` says why.
void add_what_if(const Study& study, const StudyOptions& options, StudyReport& report);

}  // namespace headroom::tune
