// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <initializer_list>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "analyze/job.h"
#include "analyze/stats.h"
#include "model/finding.h"

namespace headroom {

struct DeviceTime;

// Where processes slept when they were looked at; looks at which that was not read do not count. A look weighs as much
// as the share of its interval that is summed up.
struct Looks {
  std::array<double, 12> in{};  // by WaitChannel
  double count = 0;
  double states = 0, blocked = 0;  // looks at their state, and those in state D
  // Those that tell what for, by JobView::waits. Their intervals and what came and went in these are whole: in or near
  // the time that is summed up.
  struct Named {
    double count = 0, seconds = 0, sent = 0, received = 0;
  };
  std::map<std::pair<WaitChannel, ListId>, Named> waits;

  [[nodiscard]] double share(std::initializer_list<WaitChannel> channels) const;  // 0 without looks
  [[nodiscard]] double blocked_share() const { return states > 0 ? blocked / states : 0; }
};

// What the processes that own a context on a device, and their helpers, did on average in some time.
struct HostSummary {
  std::size_t owners = 0, helpers = 0;    // helpers: the most that lived at once
  double owner_cpu = 0, owner_delay = 0;  // of their main threads: means over owners, shares of time
  std::optional<double> owner_io;         // likewise; absent where the kernel does not count it
  double owner_threads = 0;               // cores: their other threads; mean over owners
  // Cores, all threads, and what the main thread wanted beside: of the least and the most busy owner.
  double least_owner_cpu = 0, most_owner_cpu = 0;
  double helper_cpu = 0, helper_delay = 0;  // sum of cores, ended ones included; mean run delay
  double unseen_cpu = 0;                    // cores, inside helper_cpu: of helpers too short to be seen
  // Bytes per second to and from storage, of all of them together; absent where the counters were not read.
  std::optional<double> owner_read, helper_read, owner_write;
  std::optional<double> owner_passed;  // likewise through files and pipes, from memory or storage
  double owner_passes = 0;  // the share of time in readings in which an owner read much so: once is no step's
  Looks owner_looks, helper_looks;
  double usable_cores = 0;            // by the job: cpuset and quota applied; 0 where that is not recorded
  double machine_cores = 0;           // online, of which the job may use those; 0 where that is not recorded
  std::optional<double> busy_cores;   // of the whole machine, on average; absent where that is not recorded
  std::optional<double> io_pressure;  // share of the time in which some process of the machine waited for I/O
  std::optional<double> memory_pressure, group_pressure;  // ... for memory; and some process of the job's cgroup
  std::optional<double> swapped_in;                       // pages per second, by the whole machine
  std::optional<double> major_faults;                     // per second, of owners and helpers together
  double late_cpu = 0;     // cores, on average: the busiest process of the job after `late_from`
  double of_readings = 1;  // the share of the owners' readings that is summed up: what is low says little of its time

  // Whether hardly any core of the machine was left; where that is not recorded, it may be so.
  [[nodiscard]] bool cores_full(double from) const { return !busy_cores || *busy_cores >= from * usable_cores; }

  // Share of the owners' looks in which the main thread slept in one of these.
  [[nodiscard]] double waiting_in(std::initializer_list<WaitChannel> channels) const {
    return owner_looks.share(channels);
  }
};

// Over the whole window.
[[nodiscard]] HostSummary host_summary(const Recording& recording, const JobView& job, const Window& window,
                                       Nanos late_from);
// Over the claimed time only: of the owners of the devices on which it is claimed.
[[nodiscard]] HostSummary host_during(const JobView& job, const std::vector<DeviceTime>& devices, const Claims& claims);

}  // namespace headroom
