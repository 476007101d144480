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
};

// The account for the idle part of one interval between two samples of the process that owns the context, by what it
// and its helpers did meanwhile. `idle_share` is the share of the interval in which the device was idle. Pure; the
// rules, first match (the figures are Thresholds'):
//   the owner was blocked on block I/O for `io_waits` of the idle time or more     -> input (storage)
//   it wrote `writing` bytes per second or more                                    -> checkpoint
//   helpers used the CPU or the disk, and the owner slept long enough to cover     -> input
//     `covers` of the idle time
//   the owner ran, or wanted a core, long enough to cover `covers` of it           -> host code
//   it read `reading` bytes per second or more from storage                        -> input
//   else                                                                           -> unexplained
// Confidence is high where sleeping and running cannot both cover the idle time, medium where both could.
[[nodiscard]] IdleCause idle_cause(const Activity& owner, const HelperWork& helpers, double idle_share,
                                   const Thresholds& limits = {});

}  // namespace headroom
