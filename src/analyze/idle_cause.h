// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <vector>

#include "analyze/job.h"
#include "analyze/utilisation.h"
#include "model/ledger.h"

namespace headroom {

// What the host side was seen to do while a device was idle, for one process that drives it.
struct HostView {
  std::vector<Activity> driver;                // the process that holds the context
  std::vector<std::vector<Activity>> helpers;  // its descendants that hold none (loader workers)
};

struct IdleCause {
  Account account = Account::kUnexplained;
  Confidence confidence = Confidence::kMedium;
  bool operator==(const IdleCause&) const = default;
};

// The account for the idle part of one interval between two looks at the driver process, by what it and its helpers
// did meanwhile. `idle_share` is the share of the interval in which the device was idle. Pure; the rules, first match:
//   the driver was blocked on block I/O for 0.3 of the idle time or more        -> input (storage)
//   it wrote 8 MB/s or more and slept or wrote through the idle time             -> checkpoint
//   helpers used the CPU or the disk, and the driver slept long enough to cover  -> input
//     0.6 of the idle time
//   the driver ran, or wanted a core, long enough to cover 0.6 of it             -> host code
//   it read 1 MB/s or more from storage and slept                                -> input
//   else                                                                         -> unexplained
// Confidence is high where sleeping and running cannot both cover the idle time, medium where both could.
[[nodiscard]] IdleCause idle_cause(const Activity& driver, double helpers_cpu, double helpers_read_bytes_per_second,
                                   double idle_share);

// The same for an instant of a recording: finds the intervals around `at`. `idle_share_of(begin, end)` tells how idle
// the device was. Unexplained where no interval covers `at`.
template <class IdleShare>
[[nodiscard]] IdleCause idle_cause_at(const HostView& host, Nanos at, const IdleShare& idle_share_of);

// The activity whose interval holds `at`, or nullptr.
[[nodiscard]] const Activity* activity_at(const std::vector<Activity>& list, Nanos at);

template <class IdleShare>
IdleCause idle_cause_at(const HostView& host, Nanos at, const IdleShare& idle_share_of) {
  const Activity* driver = activity_at(host.driver, at);
  if (!driver) return {Account::kUnexplained, Confidence::kLow};
  double cpu = 0, read = 0;
  for (const auto& helper : host.helpers) {
    const Activity* activity = activity_at(helper, at);
    if (!activity) continue;
    cpu += std::max(activity->cpu, activity->main_cpu.value_or(0));  // process times count in ticks of 10 ms
    read += activity->read_bytes_per_second;
  }
  return idle_cause(*driver, cpu, read, idle_share_of(driver->begin, driver->end));
}

}  // namespace headroom
