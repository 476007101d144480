// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "analyze/ledger.h"
#include "analyze/named_phases.h"

// Readings in which a named phase ends and the next begins. Where within a reading kernels ran is not known; where its
// neighbours lie in one phase each, they tell in which of the two.
namespace headroom {

// The busy part of a reading lies at its end (accountant.h). Puts it first where the reading before is busier than the
// one after, and the phases of the process that had the device change in between, by marks or NVTX: no output and no
// stack is that exact. How much of any account there is stays as it was.
void place_at_edges(const Recording& recording, const NamedPhases& named, const Thresholds& limits,
                    std::vector<DeviceTime>& devices);

}  // namespace headroom
