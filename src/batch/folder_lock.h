// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "base/time.h"
#include "batch/place.h"

// Who runs a batch in a folder: its lock is held by the batch and, after that died, by its guardian.
namespace headroom::batch {

struct Holder {
  enum class State {
    kNobody,
    kRuns,
    kStopped,   // it runs, but was stopped (Ctrl-Z)
    kGuardian,  // it died, and its guardian still stops its tasks
    kAnothers,  // a batch of another user, who lets nobody look
  } state = State::kNobody;
  pid_t pid = 0;       // of the batch; 0: not known
  pid_t guardian = 0;  // likewise
  Nanos grace = 0;     // how long its tasks get to end
};
[[nodiscard]] Holder holder_of(const std::string& folder);

// Takes the lock into `place.lock`. kBusy: somebody else has it. A removed lock file lets nobody in: where the file
// system can do that, the folder itself is locked as well.
[[nodiscard]] Result<void> lock_place(Place& place);
// Leaves word of who holds it.
void note_holder(const Place& place, pid_t guardian, Nanos grace);

}  // namespace headroom::batch
