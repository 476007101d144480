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

}  // namespace headroom::probe
