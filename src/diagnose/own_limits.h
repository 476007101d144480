// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "analyze/analysis.h"
#include "model/finding.h"

// What one cause of a set can have cost at most: of each the set's gain is a bound, and of some the recording counts
// more. Copies take no longer than their bytes at the rate of a slow host or of the link, and a want of cores no longer
// than the main thread wanted one, where nothing else of the job ran that may have kept it waiting. Code of the main
// thread costs no more than that ran, where no other thread did, and the interpreter no more than another thread had
// it.
namespace headroom::diagnose {

// Finds the limits of a finding's candidates that are below its gain, and says them beside that.
void limit_candidates(const Analysis& a, Finding& finding);

// Of the causes that these findings leave open, as OwnLimit of the whole run.
[[nodiscard]] std::vector<OwnLimit> limits_of_the_run(const Analysis& a, const std::vector<Finding>& findings);

}  // namespace headroom::diagnose
