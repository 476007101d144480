// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "tune/changes.h"
#include "tune/replay.h"
#include "tune/study_model.h"

namespace headroom::tune {

// A study's trials as they might have come, and what the study as it is makes of them.
struct Order {
  std::vector<ReplayTrial> trials;
  double target = 0;   // the value to reach
  double best_at = 0;  // seconds until the study as it is reaches it; 0: it reaches none
};

// What one seed draws: the same for all changes, so that these differ by nothing but the change.
struct Seed {
  World world;
  std::vector<Order> orders;
};

// Seed number `seed` of `seeds`.
[[nodiscard]] Seed draw_seed(const StudyModel& model, const Change& as_it_is, std::int64_t seed, std::int64_t seeds);

// The trials, as they come in `order`, under a change.
[[nodiscard]] ReplayOutcome replay(const StudyModel& model, const World& world, const Order& order,
                                   const Change& change);

}  // namespace headroom::tune
