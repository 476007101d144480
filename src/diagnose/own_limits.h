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

// Of a finding about too few cores: what loads takes its time on cores of its own, too, where it is one thread a
// process, and no run is shorter than that and what comes before and after. `findings` are all of the explanation.
void bound_by_loading(const Analysis& a, const std::vector<Finding>& findings, Finding& finding);

// Says of a start what it gains beside that if only its imports, or the code that most of it went to, took no time.
void say_part_of_start(const Analysis& a, Finding& finding);

// Of the causes that these findings leave open, as OwnLimit of the whole run.
[[nodiscard]] std::vector<OwnLimit> limits_of_the_run(const Analysis& a, const std::vector<Finding>& findings);

}  // namespace headroom::diagnose
