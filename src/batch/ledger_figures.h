// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <vector>

#include "batch/statistics.h"
#include "model/batch.h"
#include "model/explanation.h"

// The figures of a batch's answer that come from its recording: from the very slices that its ledger is the sum of, so
// that no two numbers of one answer disagree.
namespace headroom::batch {

// How busy each device was, of the ledger's span; absent for a device that the ledger does not have.
void put_device_use(const Explanation& explanation, BatchSummary& summary);

// Device time of an attempt's own kernels. Every busy slice of a task goes to exactly one of its attempts.
struct AttemptGpuTime {
  AttemptId attempt = 0;
  Nanos gpu_time = 0;
  bool operator==(const AttemptGpuTime&) const = default;
};
// Of those of `attempts` (in the order of their ids) whose kernels were seen, while they ran or by the ledger.
[[nodiscard]] std::vector<AttemptGpuTime> gpu_times(const Explanation& explanation,
                                                    std::span<const AttemptSpan> attempts);

}  // namespace headroom::batch
