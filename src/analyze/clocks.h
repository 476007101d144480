// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/stats.h"
#include "model/ledger.h"

namespace headroom {

// A stretch of time in which the driver lowered clocks, for all of it or for a part of unknown place.
struct LimitedTime {
  Window time;
  double share = 1;  // of the kernels in it
  bool operator==(const LimitedTime&) const = default;
};

// A clock that sank little by little, with kernels running.
struct ClockFall {
  Window time;  // from the last reading of the full clock to the first of the lowest
  double from_mhz = 0, to_mhz = 0;
};

// What the driver said about a device's clocks while kernels ran.
struct ClockLimits {
  bool recorded = false;                // its reasons were read at all
  std::int64_t looks = 0, limited = 0;  // at the reasons, with kernels running; and with one that lowers clocks
  std::int64_t all = 0, idle = 0;       // looks at the reasons at any time; and where the driver called the GPU idle
  bool counted = false;                 // the driver counted the time under a limit: better than looks
  std::int64_t reasons = 0;             // all such reasons, kReason… of model/metric.h
  // Nobody read reasons, and clocks were lower at times: the clock that it had else, with kernels running.
  std::optional<double> clock_before_mhz;
  std::optional<ClockFall> fall;  // to what it has at those times
  bool hot = false;               // at those times
  bool below_maximum = false;  // no limit explains the clock then, which is far below the highest that the device has
  bool clocks_set = false;     // the driver named clocks that somebody set
  // Means in the limited time, of readings with kernels running; and at all other times, of the clock where these are
  // long enough to tell it.
  std::optional<double> limited_clock_mhz, limited_watts, other_watts, other_clock_mhz;
  std::vector<LimitedTime> times;          // in order
  Nanos limited_kernels = 0, kernels = 0;  // useful time under a limit, and all of it that was looked at
};

// By the driver's counters of time under a limit where they were read, else by looks at the reasons, each of which
// speaks for the time since the look before. Where neither was read, by clocks that are lower at 80 degrees C and more
// than they were with kernels running at other times; else by clocks that are far lower for half a minute and more
// while a busy GPU draws far less power. Where none of these tells of a limit, by clocks that stay far below
// `maximum_mhz` while kernels run. `slices` are the device's, of the window.
[[nodiscard]] ClockLimits clock_limits(const Track& track, const std::vector<Slice>& slices, const Window& window,
                                       const Thresholds& limits, std::optional<std::int64_t> maximum_mhz);

}  // namespace headroom
