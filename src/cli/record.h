// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "cli/hooks.h"
#include "cli/job_marks.h"
#include "cli/live_parts.h"
#include "report/recordings.h"

// A recording of what runs already: `record`, and `why --pid`.
namespace headroom::cli {

struct RunningOptions {
  LiveOptions live;
  LinesOptions lines;
  std::vector<std::int64_t> pids;  // with all that they start; none: the GPUs, with whoever is on them
  Nanos duration = 0;              // 0: until it is told to end
  Hooks hooks;
};

// Records until a signal, the duration's end, or the end of the watched processes, says what goes wrong, and ends this
// process. `answer` is given the complete recording; what it returns is the exit code.
[[noreturn]] void record_running(const RunningOptions& options,
                                 const std::function<int(const report::Recorded&)>& answer);

}  // namespace headroom::cli
