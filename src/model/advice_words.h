// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include "model/job_variables.h"

// What findings and plans say alike.
namespace headroom {

// Of another thread, beside which the main one waits for a core.
inline constexpr std::string_view kHasTheInterpreter =
    " first: it has the interpreter meanwhile, without which no core helps";

// Of a gain beside that by cores: what the code that waits for them costs in all.
inline constexpr std::string_view kWithoutTheCode = "if only that code took no time";

// Whether its numerical libraries were told to start no threads.
[[nodiscard]] inline bool one_thread_each(const RecordingMeta& meta) {
  for (const auto& [name, value] : job_variables(meta).value_or(JobVariables{}))
    if (name == "OMP_NUM_THREADS") return value == "1";
  return false;
}

}  // namespace headroom
