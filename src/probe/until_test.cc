// SPDX-License-Identifier: Apache-2.0
#include "probe/until.h"

#include <gtest/gtest.h>

namespace headroom::probe {
namespace {

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
