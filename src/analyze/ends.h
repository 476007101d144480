// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <vector>

#include "analyze/job.h"
#include "model/ledger.h"
#include "model/recording.h"

// Ends of processes. One is found gone by a reading, some time after the last that saw it; only of the job's own end,
// and so of its first process, the kernel tells when it was.
namespace headroom {

// Sets ContextUse::seen_until of the job's uses. `lists`: of each device, when its list of processes was read.
void tell_ends(const Recording& recording, const std::map<SourceId, std::vector<Nanos>>& lists, JobView& job);

// Time in which a process ended, of which no evidence says whether it was there. Of no other slice the tiers are empty.
[[nodiscard]] inline bool an_end_lies_in(const Slice& slice) {
  return slice.account == Account::kUnexplained && slice.tiers.empty();
}

}  // namespace headroom
