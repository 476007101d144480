// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "analyze/ledger.h"
#include "model/explanation.h"

namespace headroom {

// A stretch of time at one level of utilisation.
struct Stretch {
  Nanos begin = 0, end = 0;
  int level = 0;  // 0 idle, 1 partly busy, 2 kernels running; -1 where nobody looked
  bool operator==(const Stretch&) const = default;
};

// The stretches of a device at tier N: its utilisation in windows of `window`, cut where its mean changes by more than
// chance makes of what varies within the stretches, and each given a level; none is shorter than three windows. Empty
// where there is more than one in eight windows, or one alone: then there are no phases to speak of.
[[nodiscard]] std::vector<Stretch> stretches(const std::vector<Slice>& slices, Nanos window,
                                             const Thresholds& limits = {});

// The phases of the devices whose busiest level comes back, one per level that occurs, and the slices marked with them.
// A phase has a period where the median absolute deviation of the times between its begins is at most a quarter of
// their median.
[[nodiscard]] std::vector<Phase> find_phases(const Recording& recording, std::vector<DeviceTime>& devices,
                                             const Thresholds& limits = {});

}  // namespace headroom
