// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>

#include "analyze/stats.h"

namespace headroom {

// Readings of utilisation that are low and high in turn, again and again in one rhythm. Of a few readings each there is
// no phase to be found (phases.h), and a rhythm all the same.
struct Beat {
  double readings = 0, low = 0;  // of each round, and of them those with hardly a kernel; in the middle
  std::size_t rounds = 0;
  Nanos interval = 0;  // from one reading to the next
};

// Six rounds at least, which take most of the window, nearly all of one length and with as many low readings. Low is a
// quarter of what the busy readings have; hardly a reading lies in between.
[[nodiscard]] std::optional<Beat> find_beat(const Track& track, const Window& window);

}  // namespace headroom
