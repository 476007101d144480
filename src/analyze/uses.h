// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "analyze/job.h"
#include "analyze/stats.h"
#include "model/ledger.h"

namespace headroom {

inline constexpr Nanos kNever = -1;

// What the host side was seen to do for one process that owns a context; into JobView::did.
struct HostView {
  const std::vector<Activity>* owner = nullptr;       // the process that holds the context
  std::vector<const std::vector<Activity>*> helpers;  // its descendants that hold none (loader workers)
};

// What kind of claim a Use is. All but kContext are attempts of a batch, which had the device from their begin to their
// end, whatever the driver listed.
enum class Claim : std::uint8_t {
  kContext,    // a process was listed with a context
  kUnseen,     // an attempt of which none was: too short, or the lists could not be read
  kNeverHeld,  // an attempt that computed elsewhere, or ran long enough to be seen and was not
  kAttempt,    // an attempt with contexts of its own: answers for the time around them
};

[[nodiscard]] inline bool can_own(Claim claim) { return claim == Claim::kContext || claim == Claim::kUnseen; }

// One process's use of the device, or one attempt's, with the instants that divide its time.
struct Use {
  ContextUse context;
  Claim claim = Claim::kContext;
  std::int32_t task = -1;
  Account kernels = Account::kUseful;                 // the account of its kernels
  Nanos first_kernel = kNever, last_kernel = kNever;  // within the sample's precision
  bool hung = false;                                  // after its last kernel nothing of it moved any more
  bool spins = false;                                 // its main thread uses the CPU while its kernels run
  const Track* track = nullptr;                       // its kGpuProcess rows
  bool only_holds = false;                            // a foreign one of which the driver never measured a share
  // An attempt: a context of it would have been listed, or a file of a GPU seen open, so often was looked.
  bool looked_for = false;
  bool opened = false;    // an attempt: a process of it was seen with a file of a GPU open
  bool doubtful = false;  // its kernels may be another one's: nobody was listed, and several could have run them
  bool computed = false;  // kernels ran while it had the device and nobody was listed there
  HostView host;
};

// Whether the process may have used a GPU within [begin, end), by the files that it had open: it had one of a driver's,
// or was not looked at for as long as a context takes to make.
[[nodiscard]] bool may_have_used_a_gpu(const JobView& job, SourceId process, Nanos begin, Nanos end,
                                       const Thresholds& limits);

// Of a job that is no batch and of which no process was ever listed: when one may have held the device all the same, as
// the list was not read often enough until it ended.
struct Unlisted {
  std::vector<Window> windows;
  bool opened = false;  // a process was seen with a file of a GPU open
};
[[nodiscard]] Unlisted may_have_held(const Recording& recording, const JobView& job, SourceId gpu,
                                     const Thresholds& limits = {});

// Everybody's use of one device, in order of begin. Kernels and hangs are found by who knows the readings.
[[nodiscard]] std::vector<Use> uses_of(const Recording& recording, const JobView& job, SourceId gpu,
                                       const Thresholds& limits = {});

}  // namespace headroom
