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

Comparison with_ratio(double value, double low, double high) {
  Comparison comparison;
  comparison.ratio = Ratio{value, low, high};
  return comparison;
}

TEST(AfterPair, GoesOnUntilTheIntervalIsNarrow) {
  EXPECT_EQ(after_pair(with_ratio(0.8, 0.75, 0.86), 0.05), Next::kGoOn);
  EXPECT_EQ(after_pair(with_ratio(0.8, 0.77, 0.84), 0.05), Next::kNarrow);
  EXPECT_EQ(after_pair(with_ratio(0.8, 0.77, 0.84), 0.01), Next::kGoOn);
  EXPECT_EQ(after_pair(with_ratio(0.8, 0.8, 0.8), std::nullopt), Next::kGoOn) << "so many were asked for";
}

TEST(AfterPair, TooFewIsMendedByMoreAndOtherReasonsAreNot) {
  Comparison too_few;
  too_few.reasons = {{CompareReason::kTooFewRepeats, "2 of 3", true}};
  EXPECT_EQ(after_pair(too_few, 0.05), Next::kGoOn);
  Comparison other = too_few;
  other.reasons.push_back({CompareReason::kDifferentWork, "A did 10 steps, B 20", true});
  EXPECT_EQ(after_pair(other, 0.05), Next::kCannot);
  Comparison clocks = too_few;  // A's may be lowered in the next pair
  clocks.reasons.push_back({CompareReason::kThrottled, "in B, not in A: power cap", true});
  EXPECT_EQ(after_pair(clocks, std::nullopt), Next::kGoOn);
  Comparison noted = with_ratio(1, 0.99, 1.01);
  noted.reasons = {{CompareReason::kParametersUnknown, "both", false}};
  EXPECT_EQ(after_pair(noted, 0.05), Next::kNarrow);
}

}  // namespace

}  // namespace headroom::probe
