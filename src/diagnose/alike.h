// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "analyze/analysis.h"
#include "model/finding.h"

namespace headroom::diagnose {

// What a rule says of several devices, each by itself and in the same words, is one finding about "each of GPUs 0 to
// 3": it claims what they all claim, and gains what all of that could.
[[nodiscard]] std::vector<Finding> join_alike(const Analysis& a, std::vector<Finding> findings);

// Of several GPUs, says which one a finding is about if all of its time, or nearly all, is that one's. Not of a batch:
// there it says which task.
void name_the_device(const Analysis& a, Finding& finding);

}  // namespace headroom::diagnose
