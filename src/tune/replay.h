// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/study_report.h"

// A study on a virtual clock: trials with their learning curves, taken by workers in the order in which they are given,
// sharing one GPU and the host's cores, stopped by a pruner or by their own end. No clock, no I/O.
namespace headroom::tune {

// One trial as it will go if no pruner stops it. Durations are of the trial alone on machine and GPU.
struct ReplayTrial {
  std::int64_t number = 0;                  // in the study: Hyperband derives the bracket from it
  double startup = 0;                       // seconds of host work before the first step
  bool startup_computes = false;            // as a step does: nobody knows which is which
  double stall = 0;                         // seconds more before the first step, whatever is changed
  double step = 0;                          // seconds of the first step, each of which ends with a report
  double growth = 1;                        // the first k steps take step * k^growth: above 1 later ones take longer
  std::vector<StepReport> curve;            // observed reports, then extrapolated ones to the end
  TrialState ends = TrialState::kComplete;  // how, after the last report; without reports: after the start-up
  std::optional<double> value;              // that it was observed to complete with
};

// What the trials share, and how much of it each takes.
struct ReplayMachine {
  double kernel_share = 1;   // of a step's time in which its kernels run, alone
  double contended = 1;      // of a step's time that waits where other trials compute; kernel_share under time slicing
  double cores = 0;          // of the host; 0: never the limit
  double startup_cores = 1;  // that a start-up keeps busy
  double step_cores = 1;     // that a step keeps busy, loader workers included
};

struct ReplaySettings {
  std::int64_t workers = 1;
  std::vector<std::int64_t> present;   // of them, at the begin of each trial; empty: all
  double between = 0;                  // seconds from the end of a trial to the begin of a worker's next
  double startup_factor = 1;           // of every start-up
  std::optional<double> warm_startup;  // seconds, from a worker's second trial on; never more than the trial's own
  PrunerSettings pruner;
  std::optional<std::pair<std::size_t, PrunerSettings>> change;  // from the begin of the so many-th trial on
};

// How a trial ended, and after how many reports.
struct ReplayEnd {
  TrialState state = TrialState::kWaiting;
  std::size_t reports = 0;
  double begin = 0, at = 0;  // seconds
};

struct ReplayOutcome {
  double seconds = 0;           // until the last trial ended
  std::vector<ReplayEnd> ends;  // as the trials were given
  std::array<std::int64_t, kTrialStates> states{};
  // Of the workers, together: these sum to workers x seconds.
  double startup_seconds = 0, step_seconds = 0, idle_seconds = 0;
  double any_kernel = 0;  // seconds in which a kernel of some trial ran
  // Until the last trial began: then workers run dry, which a longer study would not show. Of a trial that was open
  // then the part of its time that was over counts.
  double steady_seconds = 0, steady_any_kernel = 0, steady_trials = 0;
  std::optional<double> best_at;  // seconds at which a trial completed with an observed value as good as the target
};

// Each report is asked about, except the last one of a trial that was observed to complete there. Linear in reports
// times workers. Without trials nothing happens.
[[nodiscard]] ReplayOutcome replay(const std::vector<ReplayTrial>& trials, const ReplayMachine& machine,
                                   const ReplaySettings& settings, Direction direction, const std::string& study_name,
                                   double target);

}  // namespace headroom::tune
