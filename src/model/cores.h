// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "base/human.h"
#include "model/explanation.h"

namespace headroom {

// Cores that whoever is no part of the job used: they may pass by, so that no bound counts on them.
[[nodiscard]] inline double cores_of_others(const HostTime& host) {
  return std::max(0.0, host.busy_cores.value_or(0) - host.owner_cores - host.helper_cores);
}

// Cores that helpers of the processes on the GPU can have, those that they use now among them, while others use so
// many: what these processes do not use themselves. At least one: who waits for helpers leaves them its own.
[[nodiscard]] inline double cores_for_helpers(const HostTime& host, double others = 0) {
  const double owners = std::min(host.owner_cores, host.usable_cores - 1);
  return std::max(1.0, host.usable_cores - others - owners);
}

// Of a core that each loader worker uses. Those that run for half of their time or more may want all of one.
[[nodiscard]] inline double cores_of_a_worker(const HostTime& host) {
  constexpr double kMayWantAll = 0.5, kLeast = 0.25;
  if (host.helpers <= 0) return 1;
  const double each = host.helper_cores / static_cast<double>(host.helpers);
  return each < kMayWantAll ? std::max(each, kLeast) : 1;
}

// How many loader workers those carry.
[[nodiscard]] inline std::int64_t most_workers(const HostTime& host) {
  return static_cast<std::int64_t>(std::ceil(cores_for_helpers(host) / cores_of_a_worker(host)));
}

inline constexpr double kHardlyACore = 0.25;

// Whether those that had something to do hardly ran where the GPU waited: what limits them is no core.
[[nodiscard]] inline bool workers_sleep(const HostTime& host) {
  const double at_work = static_cast<double>(host.helpers) * (1 - host.helpers_idle);
  return host.helper_cores < kHardlyACore * at_work;
}

// "; what loads (2 processes) takes 5.4 s, unless that changes, too": why a gain is no larger.
[[nodiscard]] inline std::string what_loads_takes(double processes, double seconds) {
  return fmt::format("; what loads ({}) takes {}, unless that changes, too",
                     count_of(std::llround(processes), "process", "processes"),
                     human_duration(static_cast<Nanos>(seconds * kSecond)));
}

}  // namespace headroom
