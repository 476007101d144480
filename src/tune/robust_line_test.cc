// SPDX-License-Identifier: Apache-2.0
#include "tune/robust_line.h"

#include <gtest/gtest.h>

#include <random>

namespace headroom::tune {
namespace {

using Points = std::vector<std::pair<double, double>>;

Points line_with(int count, double intercept, double slope, double noise, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, 1);
  Points points;
  for (int i = 0; i < count; ++i) {
    const double x = 1 + static_cast<double>(random() % 40);
    points.emplace_back(x, intercept + slope * x + noise * normal(random));
  }
  return points;
}

TEST(RobustLine, FindsALineThatAllPointsLieOn) {
  const auto line = robust_line(line_with(50, 7, 3, 0, 1));
  ASSERT_TRUE(line);
  EXPECT_NEAR(line->intercept.value, 7, 1e-9);
  EXPECT_NEAR(line->slope.value, 3, 1e-9);
  EXPECT_NEAR(line->slope.low, 3, 1e-9);
  EXPECT_NEAR(line->intercept.high, 7, 1e-9);
}

TEST(RobustLine, AFifthOfThePointsFarOffDoesNotMoveItFar) {
  Points points = line_with(200, 45, 2, 3, 2);
  for (std::size_t i = 0; i < points.size(); i += 5) points[i].second += 2000;
  const auto line = robust_line(points);
  ASSERT_TRUE(line);
  EXPECT_NEAR(line->intercept.value, 45, 5);
  EXPECT_NEAR(line->slope.value, 2, 0.3);
}

TEST(RobustLine, ItsRangesHoldTheTruthAboutNineTimesInTen) {
  for (const int count : {60, 1500}) {
    int intercepts = 0, slopes = 0;
    for (unsigned seed = 0; seed < 40; ++seed) {
      const auto line = robust_line(line_with(count, 45, 2, 9, seed));
      ASSERT_TRUE(line);
      intercepts += line->intercept.low <= 45 && 45 <= line->intercept.high;
      slopes += line->slope.low <= 2 && 2 <= line->slope.high;
    }
    EXPECT_GE(intercepts, 32) << count;
    EXPECT_GE(slopes, 32) << count;
  }
}

TEST(RobustLine, IsTheSameEachTime) {
  const Points points = line_with(5000, 45, 2, 9, 3);
  const auto a = robust_line(points), b = robust_line(points);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->intercept, b->intercept);
  EXPECT_EQ(a->slope, b->slope);
}

TEST(RobustLine, SaysNothingWithoutALine) {
  EXPECT_FALSE(robust_line({}));
  EXPECT_FALSE(robust_line(line_with(7, 1, 1, 0, 1))) << "too few";
  EXPECT_FALSE(robust_line(Points(50, {3, 9}))) << "all have the same steps";
  EXPECT_FALSE(robust_line(line_with(100, 50, 0, 5, 1))) << "durations do not rise";
  EXPECT_FALSE(robust_line(line_with(100, 500, -2, 5, 1))) << "durations fall";
}

}  // namespace
}  // namespace headroom::tune
