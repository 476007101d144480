// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "analyze/analysis.h"
#include "model/finding.h"

namespace headroom::diagnose {

// Puts the causes of a set into the order in which what the job did meanwhile speaks for them, and says what does. The
// table of weigh.cc decides; the order in which the rule named them counts where it hardly does. No cause that
// something speaks for leaves the set. Says whether the first is the likeliest by far. Does nothing to a finding of one
// cause, and where the job's processes were not watched.
void weigh(const Analysis& a, Finding& finding);

// Of a set whose first cause is the likeliest by far, names that one; the others stay as less likely. The last thing
// that is done to a finding: what it can bring is counted for all that it may be.
void name_the_likely(Finding& finding);

}  // namespace headroom::diagnose
