// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "analyze/stats.h"
#include "model/ledger.h"

// Stretches of a device's time that its mean hides.
namespace headroom {

// Kernels that were resident and did nothing: a collective whose other side never came, say.
struct Stall {
  Window time;
  double watts = 0, usual_watts = 0;  // in it, and in its other readings with kernels
};

// The longest stretch of useful time whose readings all show a full GPU that draws at most `stall_power` of what its
// other busy readings draw and uses its memory for at most `stall_memory` of the time. Nothing where the power or the
// memory's use was not read, where it is shorter than `stall_shortest`, or where there is no other regime.
[[nodiscard]] std::optional<Stall> find_stall(const Track& track, const std::vector<Slice>& slices,
                                              const Window& window, const Thresholds& limits);

// Time without a kernel from some instant to the end.
struct QuietEnd {
  Nanos from = 0;
  std::optional<double> memory_before, memory_after;  // bytes: while kernels ran, and in the last reading
};

// Where the device ran kernels and then none to the end, for `held_long` at least and for `quiet_end` times its longest
// pause before.
[[nodiscard]] std::optional<QuietEnd> find_quiet_end(const Track& track, const std::vector<Slice>& slices,
                                                     const Window& window, const Thresholds& limits);

}  // namespace headroom
