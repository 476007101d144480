// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tune/step_times.h"

// Time in which a study, or some of its workers, did nothing.
namespace headroom::tune {

struct Standstill {
  double begin = 0, end = 0;  // seconds
  std::int64_t open = 0;      // trials, all that time
};

// Stretches in which no trial began or ended for far longer than trials take: three times the 95th of 100 durations, of
// 100 stretches between two such events, and what the reports of the shortest open trial make plausible. A machine that
// sleeps leaves such, and all workers stopped. Of open trials the first of it counts as a usual trial's time. In order.
[[nodiscard]] std::vector<Standstill> standstills(const std::vector<TimedTrial>& trials);

// A moment on a clock that stops while the study stands still.
[[nodiscard]] inline double without(const std::vector<Standstill>& stills, double at) {
  double out = 0;
  for (const Standstill& still : stills)
    if (still.begin < at) out += std::min(at, still.end) - still.begin;
  return at - out;
}

// How many of so many workers were there when each trial began: one that had none for over `pause` seconds on end had
// not begun yet, had stopped, or had ended. Workers beyond those that ever had trials at once are taken to be there.
[[nodiscard]] std::vector<std::int64_t> present(const std::vector<TimedTrial>& trials, std::int64_t workers,
                                                double pause);

}  // namespace headroom::tune
