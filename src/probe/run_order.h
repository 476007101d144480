// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/comparison.h"

// In which order the repeats of a comparison run. Pure.
namespace headroom::probe {

// kAlternate: A B, B A, A B, … so that what drifts with time (a GPU that warms up, a page cache that fills) meets all
// sides alike. kRandom: likewise, but which of them begins is drawn for every two rounds, so that nothing that recurs
// can keep in step with it.
enum class RunOrder : std::uint8_t { kAlternate, kRandom };

// One repeat of one side.
struct PlannedRun {
  std::size_t side = 0;
  int round = 0;  // from 0: one repeat of every side is a round
  bool operator==(const PlannedRun&) const = default;
};

// Within every two rounds the places of a side add up to the same for all sides. More rounds, or another invocation
// with the same seed, begin with the same runs.
[[nodiscard]] std::vector<PlannedRun> order_runs(std::size_t sides, int rounds, RunOrder order, std::uint64_t seed = 0);

enum class Next : std::uint8_t {
  kGoOn,
  kNarrow,  // the interval is as narrow as was asked for
  kCannot,  // a reason refuses the comparison that more repeats do not mend
};
// After a pair of repeats. `half_width`: of the interval, as a share of the ratio; absent: however wide.
[[nodiscard]] Next after_pair(const Comparison& so_far, std::optional<double> half_width);

}  // namespace headroom::probe
