// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/explanation.h"
#include "plan/candidates.h"

namespace headroom::planning {

// What to look at first where a finding leaves several causes open: the cheapest observations, and which of its causes
// each of them tells. Of an explanation with such a finding.
[[nodiscard]] Candidate first_look(const Explanation& e);

}  // namespace headroom::planning
