// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tune/step_model.h"
#include "tune/timeline.h"

namespace headroom::tune {

// Ends RUNNING trials and the study: now; where nothing was heard for longer than a trial can take, at the last sign of
// life, which is when its storage was written, unless its trials are much older than that. Then finds dead trials: by
// their process, their heartbeat, or where nothing was heard of one for longer than any can take.
void settle(const Study& study, const StudyOptions& options, const StepModel& model, Timeline& timeline);

}  // namespace headroom::tune
