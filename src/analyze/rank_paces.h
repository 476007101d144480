// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "analyze/stats.h"
#include "model/recording.h"
#include "model/thresholds.h"

namespace headroom {

// How long the steps of one rank of a job took beside the median of the others, step by step.
struct RankPace {
  std::string name;               // "worker 6", "rank 3 (process 4711)"
  double slowest = 1;             // its time by that of the medians, in the steps in a row where that is highest …
  std::int64_t from = 0, to = 0;  // … and which steps these are
  double all = 1;                 // in all steps
  std::int64_t steps = 0;         // that all ranks did
  std::string via;                // how it counts
  // How much less the steps would take together if each waits for its slowest rank, and this one were as its peers.
  double bound = 1;
};

// The slowest first. Nothing where fewer than three count steps in the same way, or did too few.
[[nodiscard]] std::vector<RankPace> rank_paces(const Recording& recording, const Window& window,
                                               const Thresholds& limits);

}  // namespace headroom
