// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "analyze/analysis.h"
#include "model/finding.h"

namespace headroom::diagnose {

// After the last task on a GPU was started: until the last of them ended, some GPUs had nothing left to do.
struct Tail {
  Nanos begin = 0, end = 0;      // from the first GPU without a task on
  Claims lost;                   // device time without a task in it
  std::vector<Nanos> free_from;  // by device of the ledger: when it had no task any more; `end` where it had one
};
// Nothing where no task ran on a GPU, or where the window does not hold all of it. Where tasks still waited at the end
// (the batch was stopped) nothing is lost to it.
[[nodiscard]] std::optional<Tail> tail_of(const Analysis& a);

// How long some task waited within a stretch of time.
class WaitingTime {
 public:
  explicit WaitingTime(const Analysis& a);
  [[nodiscard]] Nanos within(Nanos begin, Nanos end) const { return until(end) - until(begin); }

 private:
  [[nodiscard]] Nanos until(Nanos at) const;
  struct Stretch {
    Nanos begin = 0, end = 0, before = 0;  // waiting time before `begin`
  };
  std::vector<Stretch> stretches_;
};

[[nodiscard]] std::optional<BatchTimes> batch_times(const Analysis& a);

}  // namespace headroom::diagnose
