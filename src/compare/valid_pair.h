// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "compare/compare.h"

namespace headroom::compare {

// The command that makes a valid pair of what was refused, and what people must know to use it, into `result`: `ab` of
// the two commands, or of the two batches with the tasks that both can do. None where another run of the same would not
// tell: of a side that only failed, of a run against itself, of batches that have no task in common.
void name_valid_pair(const Side& a, const Side& b, const CompareRequest& request, Comparison& result);

}  // namespace headroom::compare
