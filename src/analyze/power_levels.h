// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "analyze/stats.h"

namespace headroom {

// Readings of power that lie at two levels with hardly one between them: of a GPU whose utilisation nobody read, that
// tells when it had work, as far as anything does.
struct PowerLevels {
  double low_watts = 0, high_watts = 0;  // the mean of each
  double high_share = 0;                 // of the readings
  std::vector<Window> high;              // the stretches at the upper level, in order of time
  std::optional<Nanos> period;           // from one to the next, where that is steady
};

// The upper level is half as high again as the lower and ten watts above it; each has a twentieth of the readings, and
// a stretch of two readings.
[[nodiscard]] std::optional<PowerLevels> power_levels(const Track& track, const Window& window);

}  // namespace headroom
