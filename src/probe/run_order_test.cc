// SPDX-License-Identifier: Apache-2.0
#include "probe/run_order.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace headroom::probe {
namespace {

using Runs = std::vector<PlannedRun>;

TEST(RunOrder, PairsAlternate) {
  EXPECT_EQ(order_runs(2, 3, RunOrder::kAlternate), (Runs{{0, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 2}, {1, 2}}));
  EXPECT_TRUE(order_runs(2, 0, RunOrder::kAlternate).empty());
}

TEST(RunOrder, EverySideHasEveryRoundOnceAndTheSamePlacesInTwoRounds) {
  for (const RunOrder order : {RunOrder::kAlternate, RunOrder::kRandom})
    for (std::size_t sides = 1; sides <= 5; ++sides)
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const Runs runs = order_runs(sides, 6, order, seed);
        ASSERT_EQ(runs.size(), 6 * sides);
        std::set<std::pair<std::size_t, int>> seen;
        std::map<std::pair<std::size_t, int>, std::size_t> places;  // by side and pair of rounds
        for (std::size_t i = 0; i < runs.size(); ++i) {
          seen.insert({runs[i].side, runs[i].round});
          ASSERT_EQ(runs[i].round, static_cast<int>(i / sides));
          places[{runs[i].side, runs[i].round / 2}] += i % sides;
        }
        EXPECT_EQ(seen.size(), runs.size());
        for (const auto& [of, sum] : places) EXPECT_EQ(sum, sides - 1);
      }
}

TEST(RunOrder, MoreRoundsBeginWithTheSameRuns) {
  const Runs few = order_runs(3, 4, RunOrder::kRandom, 7), many = order_runs(3, 9, RunOrder::kRandom, 7);
  EXPECT_EQ(few, Runs(many.begin(), many.begin() + static_cast<std::ptrdiff_t>(few.size())));
}

TEST(RunOrder, ASeedDecidesWhoBegins) {
  std::set<std::size_t> first;
  for (std::uint64_t seed = 0; seed < 20; ++seed) first.insert(order_runs(2, 2, RunOrder::kRandom, seed).front().side);
  EXPECT_EQ(first.size(), 2U);
}

}  // namespace
}  // namespace headroom::probe
