// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "model/study_report.h"
#include "tune/standstill.h"
#include "tune/study_options.h"

namespace headroom::tune {

// What shows that a RUNNING trial does not run.
enum class DeadBy : std::uint8_t { kNone = 0, kProcess, kHeartbeat, kAge, kReplaced, kLeftBehind };

// A trial in time, in the study's own times.
struct TrialSpan {
  bool timed = false;        // it has the times that its state has, in order
  Nanos begin = 0, end = 0;  // of one that is RUNNING, the study's end
  Nanos first_step = 0;      // an estimate: `begin` where there is none
  Nanos alive_until = 0;     // `end`, or a dead trial's last sign of life
  Nanos last_sign = 0;       // of one that is RUNNING: by its heartbeat or its reports; else its begin
  DeadBy dead = DeadBy::kNone;
  std::int64_t lane = 0;
  [[nodiscard]] Nanos duration() const { return end - begin; }
};

struct Timeline {
  StudyClock clock;
  bool any = false;                     // a trial has times
  Nanos begin = 0, end = 0;             // first begin; last end, or where trials run: now
  bool stopped = false;                 // nothing was heard for longer than a trial can plausibly take
  Nanos silence = 0;                    // since the latest sign of life; only if stopped
  double longest = 0;                   // seconds, of finished trials
  std::vector<TrialSpan> spans;         // one per trial
  std::vector<Standstill> stood_still;  // since `begin`; only once the trials are settled (liveness.h)

  // Of the time from `from` to `until`, what lies in standstills without an open trial: nobody's time.
  [[nodiscard]] Nanos paused(Nanos from, Nanos until) const;
};

// Where its trials, as they are settled, stood still.
[[nodiscard]] std::vector<Standstill> standstills(const Study& study, const Timeline& timeline);

// Begins and ends as the storage has them; a RUNNING trial ends where it begins until settle() (liveness.h).
[[nodiscard]] Timeline timeline(const Study& study, const StudyOptions& options);

// Of a number of seconds, of 158 years at most.
[[nodiscard]] inline Nanos to_nanos(double seconds) {
  constexpr double kMost = 5e9;
  return static_cast<Nanos>(std::clamp(seconds, -kMost, kMost) * 1e9);
}

// The trials that made progress and ended on their own or by pruning: their durations tell of start-up and steps.
[[nodiscard]] inline bool tells_of_steps(const Trial& trial, const TrialSpan& span) {
  return span.timed && trial.reports > 0 &&
         (trial.state == TrialState::kComplete || trial.state == TrialState::kPruned);
}

}  // namespace headroom::tune
