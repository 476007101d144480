// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "analyze/analysis.h"
#include "model/finding.h"

namespace headroom::diagnose {

// Puts the causes of a set into the order in which what the job did meanwhile speaks for them, and says what does. The
// table of weigh.cc decides; the order in which the rule named them counts where it hardly does. No cause leaves the
// set. Does nothing to a finding of one cause, and where the job's processes were not watched.
void weigh(const Analysis& a, Finding& finding);

}  // namespace headroom::diagnose
