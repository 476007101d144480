// SPDX-License-Identifier: Apache-2.0
#include "analyze/held_memory.h"

#include <algorithm>

namespace headroom {

std::optional<HeldMemory> held_memory(const Track& track, const Window& window, Nanos interval) {
  constexpr double kLeast = 256.0 * (1 << 20);        // bytes that a job takes, beyond what is there without one
  constexpr double kTaken = 0.25;                     // of them, from which on it is there
  constexpr double kShortest = 0.05, kLongest = 0.9;  // of the time
  const Column *util = track.find(Metric::kGpuUtil), *memory = track.find(Metric::kMemoryUsed);
  if (!util || !memory) return std::nullopt;
  const auto read = [&](std::size_t row) { return window.holds(track.at[row]) && util->has(row) && memory->has(row); };
  std::optional<double> low, high;
  for (std::size_t row = 0; row < track.at.size(); ++row) {
    if (!read(row)) continue;
    const double used = to_unit(Metric::kMemoryUsed, memory->values[row]);
    low = std::min(low.value_or(used), used), high = std::max(high.value_or(used), used);
  }
  if (!high || *high - *low < kLeast || *low > *high / 2) return std::nullopt;
  HeldMemory found;
  double busy = 0;
  for (std::size_t row = 0; row < track.at.size(); ++row) {
    if (!read(row)) continue;
    const Nanos since = row > 0 ? track.at[row] - track.at[row - 1] : interval;
    const Nanos length = std::min(since, 3 * interval);  // after a gap it speaks for a part of it
    found.observed += length;
    if (to_unit(Metric::kMemoryUsed, memory->values[row]) < *low + kTaken * (*high - *low)) continue;
    found.held += length;
    busy += to_unit(Metric::kGpuUtil, util->values[row]) * static_cast<double>(length);
  }
  const double share = static_cast<double>(found.held) / static_cast<double>(std::max<Nanos>(1, found.observed));
  if (share < kShortest || share > kLongest) return std::nullopt;
  found.busy = busy / static_cast<double>(found.held);
  return found;
}

}  // namespace headroom
