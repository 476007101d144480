// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "analyze/analysis.h"
#include "stacks/frame.h"

namespace headroom {

// The stacks of the processes that held a GPU, each once, with the time of their GPUs within the window; the longest
// idle time first. Of a process with several threads, one at each instant (stack_evidence.h).
[[nodiscard]] std::vector<stacks::WeightedStack> stack_profile(const Recording& recording, const Analysis& analysis);
// Of a recording whose profile is empty, for people.
[[nodiscard]] std::string why_no_stacks(const RecordingMeta& meta);

}  // namespace headroom
