// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "base/random.h"

// What a trial's duration is made of, where the storage tells nothing but its begin, its end and how many reports it
// made: a start-up, and steps that take longer the more trials compute beside it.
namespace headroom::tune {

struct TimedTrial {
  double begin = 0, end = 0;  // seconds
  std::size_t reports = 0;
  std::optional<double> startup;  // seconds, where it was measured
  double relative = 1;            // of its steps' time: what its parameters make of it
  // Its reports as steps of the middle trial.
  [[nodiscard]] double steps() const { return static_cast<double>(reports) * relative; }
};

// One way in which the durations can have come about. All durations are of a trial alone.
struct StepTimes {
  double contended = 0;                   // of a step's time that waits where other trials compute: gpu_share.h
  double startup = 0, startup_error = 0;  // mean, and standard error of the mean
  double startup_variance = 0;            // between trials
  double step = 0, step_variance = 0;     // per report of the middle trial
  std::vector<double> crowding;           // per trial: by how much its steps took longer than alone
  double fits = 0;                        // log likelihood, up to a constant
};

// How the durations are explained under each of a grid of contended shares; `fits` says how well, before what is known
// of the GPU: kernels of different processes take turns, so that it is the share of kernels (`kernel_share`, 1 where
// nothing says), or less by what readings of it overstate, and much less only with MPS. Weighted least squares of the
// duration on the reports, with variances for start-ups and for steps. `startup`: a first guess of the mean; absent: it
// is not known, none is looked for, and trials compute from their begin.
[[nodiscard]] std::vector<StepTimes> step_times(const std::vector<TimedTrial>& trials,
                                                std::optional<double> kernel_share, std::optional<double> startup);

// One of them, by its likelihood.
[[nodiscard]] const StepTimes& draw(const std::vector<StepTimes>& ways, Random& random);

// Share of the time from the first begin to the last end in which so many trials were past their start-up, by number.
[[nodiscard]] std::vector<double> computing_shares(const std::vector<TimedTrial>& trials,
                                                   std::optional<double> startup);

}  // namespace headroom::tune
