// SPDX-License-Identifier: Apache-2.0
#include "probe/run_order.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

namespace headroom::probe {

std::vector<PlannedRun> order_runs(std::size_t sides, int rounds, RunOrder order, std::uint64_t seed) {
  std::vector<std::size_t> places(sides);
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::mt19937_64 random(seed);
  std::vector<PlannedRun> runs;
  for (int round = 0; round < rounds; ++round) {
    const bool second = round % 2 == 1;
    if (order == RunOrder::kRandom && !second)  // Fisher-Yates, by hand: std::shuffle differs between libraries
      for (std::size_t i = sides; i > 1; --i) std::swap(places[i - 1], places[random() % i]);
    if (second) std::reverse(places.begin(), places.end());
    for (const std::size_t side : places) runs.push_back({.side = side, .round = round});
    if (second) std::reverse(places.begin(), places.end());
  }
  return runs;
}

namespace {

// Of lowered clocks because more pairs may show them on the other side, too.
bool more_may_mend(CompareReason reason) {
  return reason == CompareReason::kTooFewRepeats || reason == CompareReason::kThrottled;
}

}  // namespace

Next after_pair(const Comparison& so_far, std::optional<double> half_width) {
  const bool cannot = std::any_of(so_far.reasons.begin(), so_far.reasons.end(), [](const ComparedReason& reason) {
    return reason.refuses && !more_may_mend(reason.reason);
  });
  if (cannot) return Next::kCannot;
  if (!half_width || !so_far.ratio) return Next::kGoOn;
  const Ratio& ratio = *so_far.ratio;
  return (ratio.high - ratio.low) / 2 <= *half_width * ratio.value ? Next::kNarrow : Next::kGoOn;
}

}  // namespace headroom::probe
