// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "analyze/job.h"
#include "model/ledger.h"
#include "model/thresholds.h"

namespace headroom {

struct IdleCause {
  Account account = Account::kUnexplained;
  Confidence confidence = Confidence::kMedium;
  bool operator==(const IdleCause&) const = default;
};

// What the helpers of a process (its descendants without a context: loader workers) did together.
struct HelperWork {
  double cpu = 0, read_bytes_per_second = 0;
  bool waits_for_data = false;  // one of them was seen asleep on storage or a network
};

// The account for the idle part of one interval between two samples of the process that owns the context, by what it
// and its helpers did meanwhile. `idle_share` is the share of the interval in which the device was idle;
// `after_writing` says that the owner had just written a model's state. Pure; the rules, first match (the figures are
// Thresholds'):
//   the owner wrote `writing` bytes per second or more, or slept on the disk after that     -> checkpoint
//   it was blocked on block I/O for `io_waits` of the idle time or more                     -> input (storage)
//   helpers used the CPU or the disk, or it read from storage and was asleep on the disk,   -> input
//     and it slept long enough to cover `covers` of the idle time
//   the owner's main thread ran, or wanted a core, long enough to cover `covers` of it      -> host code
//   it was asleep on a remote file, or a helper on storage or a network                     -> input
//   other threads of the owner used `other_threads` cores or more                           -> host code
//   it read `reading` bytes per second or more from storage                                 -> input
//   else                                                                                    -> unexplained
// Confidence is high where sleeping and running cannot both cover the idle time, medium where both could, or where it
// was a core that it wanted.
[[nodiscard]] IdleCause idle_cause(const Activity& owner, const HelperWork& helpers, double idle_share,
                                   const Thresholds& limits = {}, bool after_writing = false);

// The share of an interval, at its end, that writing what was written can have taken: the owner did not run, or ran to
// write it. Nothing where it wrote too little for a model's state.
[[nodiscard]] std::optional<double> writing_share(const Activity& owner, const Thresholds& limits);

}  // namespace headroom
