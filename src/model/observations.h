// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "model/finding.h"
#include "model/recording.h"

namespace headroom {

// The cheapest observation that tells a cause from its look-alikes and that a recording does not hold already: who has
// process times is not told to record them, and who has no Python not to look at its stacks.
[[nodiscard]] std::string_view next_observation(Cause cause, const RecordingMeta& meta);

// The same of a candidate of this finding, which may know nearer what there is to look at.
[[nodiscard]] std::string_view next_observation(Cause cause, const Finding& finding, const RecordingMeta& meta);

// How that observation is made: an instruction that can be followed, also where the job has ended.
[[nodiscard]] std::string step_of_observation(Cause cause, const Finding& finding, const RecordingMeta& meta);

// What was recorded has ended: no process of it can be looked at any more. A recorder that was told to stop knows not.
[[nodiscard]] bool job_is_over(const RecordingMeta& meta);

// It was made of a foreign log or trace: nobody of ours was there.
[[nodiscard]] bool is_imported(const RecordingMeta& meta);

// Python stacks were asked for, nothing kept them from being read, and there are none: the job is no Python program.
[[nodiscard]] bool without_python(const RecordingMeta& meta);

// Advice as the program of a recording calls things.
[[nodiscard]] std::string_view words_for(const RecordingMeta& meta, const Wording& advice);

// What shows the stacks of a program without Python.
inline constexpr std::string_view kNativeStacks = "gdb -p PID -batch -ex 'thread apply all bt'";

}  // namespace headroom
