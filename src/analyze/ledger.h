// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "analyze/job.h"
#include "model/ledger.h"
#include "model/recording.h"

namespace headroom {

// The time of each device, cut into slices that each have one account (docs/ledger.md has the rules). The slices of a
// device cover [meta.start, meta.end) without gap or overlap; where they are cut does not depend on any window, so the
// ledgers of two neighbouring windows add up to the ledger of both.
struct DeviceTime {
  SourceId source = kNoSource;
  Device device;
  bool used = false;  // a process of the job held a compute context on it
  std::vector<Slice> slices;
};

// The devices of the budget, in order of index: those the job was given or ever held; all where there is no job.
[[nodiscard]] std::vector<DeviceTime> device_times(const Recording& recording, const JobView& job);

// Sums the slices over [begin, end) (clipped to the recording's span). Budget and sum are equal to the nanosecond.
[[nodiscard]] Ledger ledger(const std::vector<DeviceTime>& devices, Nanos begin, Nanos end);

}  // namespace headroom
