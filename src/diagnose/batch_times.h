// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <optional>
#include <vector>

#include "diagnose/rules.h"

namespace headroom::diagnose {

// The part of a slice within the ledger's window, and within [from, to).
[[nodiscard]] inline Nanos part_of(const Case& c, const Slice& slice, Nanos from, Nanos to) {
  return std::max<Nanos>(0,
                         std::min({slice.end, c.ledger().end, to}) - std::max({slice.begin, c.ledger().begin, from}));
}
[[nodiscard]] inline Nanos part_of(const Case& c, const Slice& slice) {
  return part_of(c, slice, slice.begin, slice.end);
}

// After the last task on a GPU was started: until the last of them ended, some GPUs had nothing left to do.
struct Tail {
  Nanos begin = 0, end = 0;      // from the first GPU without a task on
  Nanos lost = 0;                // device time without a task in it
  std::vector<Nanos> free_from;  // by device of the ledger: when it had no task any more; `end` where it had one
};
// Nothing where no task ran on a GPU. Where tasks still waited at the end (the batch was stopped) nothing is lost to
// it.
[[nodiscard]] std::optional<Tail> tail_of(const Case& c);

// How long some task waited within a stretch of time.
class WaitingTime {
 public:
  explicit WaitingTime(const Case& c);
  [[nodiscard]] Nanos within(Nanos begin, Nanos end) const { return until(end) - until(begin); }

 private:
  [[nodiscard]] Nanos until(Nanos at) const;
  struct Stretch {
    Nanos begin = 0, end = 0, before = 0;  // waiting time before `begin`
  };
  std::vector<Stretch> stretches_;
};

[[nodiscard]] std::optional<BatchTimes> batch_times(const Case& c);

}  // namespace headroom::diagnose
