// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "analyze/analysis.h"
#include "stacks/families.h"
#include "stacks/frame.h"

namespace headroom {

// The stacks of the processes that held a GPU, each once, with the time of their GPUs within the window; the longest
// idle time first. Of a process with several threads, one at each instant (stack_evidence.h).
[[nodiscard]] std::vector<stacks::WeightedStack> stack_profile(const Recording& recording, const Analysis& analysis);
// Likewise of a window, in offsets from the recording's start; of several machines each by itself, and added up.
[[nodiscard]] std::vector<stacks::WeightedStack> profile_of(const Recording& recording, std::pair<Nanos, Nanos> window,
                                                            const std::vector<stacks::FamilyRule>& families);
// Of a recording whose profile is empty, for people.
[[nodiscard]] std::string why_no_stacks(const RecordingMeta& meta);

}  // namespace headroom
