// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/study_report.h"

// A study on a virtual clock: trials with their learning curves, taken by workers in the order of their numbers,
// sharing one GPU and the host's cores, stopped by a pruner or by their own failure. No clock, no I/O.
namespace headroom::tune {

// One trial as it will go if nobody stops it. Durations are of the trial alone on machine and GPU.
struct ReplayTrial {
  double startup = 0;                       // seconds of host work before the first step
  double step = 0;                          // seconds per step
  std::vector<StepReport> curve;            // observed reports, then extrapolated ones to the end
  std::size_t observed = 0;                 // so many of them are observed
  std::optional<std::size_t> fails_before;  // fails before it makes this report: 0 in its start-up
};

// What the trials share, and how much of it each takes.
struct ReplayMachine {
  double kernel_share = 1;   // of a step's time in which its kernels run, alone
  double cores = 0;          // of the host; 0: never the limit
  double startup_cores = 1;  // that a start-up keeps busy
  double step_cores = 1;     // that a step keeps busy, loader workers included
};

struct ReplaySettings {
  std::int64_t workers = 1;
  double between = 0;                  // seconds from the end of a trial to the begin of a worker's next
  double startup_factor = 1;           // of every start-up
  std::optional<double> warm_startup;  // seconds, from a worker's second trial on
  PrunerSettings pruner;
  std::optional<std::pair<std::int64_t, PrunerSettings>> change;  // from the begin of this trial on, for new reports
};

struct ReplayOutcome {
  double seconds = 0;  // until the last trial ended
  std::array<std::int64_t, kTrialStates> states{};
  double any_kernel = 0;       // seconds in which a kernel of some trial ran
  double kernel_seconds = 0;   // summed over trials
  double startup_seconds = 0;  // summed over trials
  double core_seconds = 0;
  std::optional<double> best_at;  // seconds at which an observed value was as good as `target`
};

// `target`: the value to reach; only observed reports of trials that complete count as reached.
[[nodiscard]] ReplayOutcome replay(const std::vector<ReplayTrial>& trials, const ReplayMachine& machine,
                                   const ReplaySettings& settings, Direction direction, const std::string& study_name,
                                   double target);

}  // namespace headroom::tune
