// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <initializer_list>
#include <optional>

#include "analyze/job.h"
#include "analyze/stats.h"

namespace headroom {

// What the processes that own a context on a device, and their helpers, did on average within a window.
struct HostSummary {
  std::size_t owners = 0, helpers = 0;
  double owner_cpu = 0, owner_delay = 0;    // of their main threads: means over owners, shares of time
  std::optional<double> owner_io;           // likewise; absent where the kernel does not count it
  double helper_cpu = 0, helper_delay = 0;  // sum of cores; mean run delay
  double helper_disk = 0;                   // share of samples in state D
  double read_rate = 0, write_rate = 0;     // bytes per second: of all of them; of the owners
  std::array<double, 12> waits{};           // share of the owners' samples, by WaitChannel
  double usable_cores = 0;                  // cpuset and quota applied; 0 where that is not recorded
  std::optional<double> busy_cores;         // of the whole machine, on average; absent where that is not recorded
  double late_cpu = 0;                      // cores: the busiest process of the job after `late_from`

  // Share of the owners' samples in which the main thread slept in one of these.
  [[nodiscard]] double waiting_in(std::initializer_list<WaitChannel> channels) const;
};

[[nodiscard]] HostSummary host_summary(const Recording& recording, const JobView& job, const Window& window,
                                       Nanos late_from);

}  // namespace headroom
