// SPDX-License-Identifier: Apache-2.0
#include "scheduler/lengths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace headroom::scheduler {
namespace {

Lengths of(const std::vector<double>& all) {
  Lengths lengths;
  for (const double one : all) lengths.add(one);
  return lengths;
}

TEST(LengthCurve, OfTasksThatAllEndedIsTheirMean) {
  const LengthCurve curve(of({10, 20, 30}), {});
  EXPECT_NEAR(curve.mean(), 20, 1e-9);
  EXPECT_GE(curve.variance(), 200.0 / 3) << "of three";
  EXPECT_NEAR(curve.left(0), 20, 1e-9);
  EXPECT_NEAR(curve.left(15), 10, 1e-9) << "the one of 10 s is out";
  EXPECT_NEAR(curve.left_at_most(0, 0.5), 20, 1e-9);
  EXPECT_GE(curve.left_at_most(0, 0.9), 30);
}

TEST(LengthCurve, OfManyThatEndedTheVarianceIsTheirs) {
  std::vector<double> all;
  for (int i = 0; i < 300; ++i) all.push_back(10.0 + i % 3 * 10);
  EXPECT_NEAR(LengthCurve(of(all), {}).variance(), 200.0 / 3, 15);
}

// Alike they may all be, but of two one cannot know it.
TEST(LengthCurve, TheFewerHaveEndedTheLongerTheNextOneMayTake) {
  const LengthCurve two(of({10, 10}), {}), many(of(std::vector<double>(60, 10)), {});
  EXPECT_GT(two.left_at_most(0, 0.9), 15);
  EXPECT_LT(many.left_at_most(0, 0.9), 12);
  EXPECT_LT(two.left_at_least(0, 0.9), many.left_at_least(0, 0.9));
  EXPECT_GT(two.variance(), many.variance());
}

TEST(LengthCurve, WhoHasOutlivedAllThatEndedMayGoOnForAsLongAgain) {
  const std::vector<double> once{20}, twice{40};
  const double first = LengthCurve(of({10, 10, 10}), once).left_at_most(20, 0.9),
               second = LengthCurve(of({10, 10, 10}), twice).left_at_most(40, 0.9);
  EXPECT_GT(first, 20);
  EXPECT_GT(second, 40);
  EXPECT_LT(LengthCurve(of({10, 10, 10}), twice).left_at_least(40, 0.9), 10) << "or end at once";
}

TEST(LengthLaw, SaysHowMuchMoreATaskTakes) {
  const LengthLaw law{.usual = 10, .scatter = 0.3};
  EXPECT_NEAR(law.left_at_most(0, 0.5), 10, 0.1);
  EXPECT_NEAR(law.left_at_most(10, 0.5), 2, 0.1) << "of those above the median the middle is the upper quartile";
  EXPECT_GT(law.left_at_most(50, 0.9), law.left_at_most(20, 0.9));
  const LengthLaw with_odd{.usual = 10, .scatter = 0.3, .odd = 0.1};
  EXPECT_LT(with_odd.left_at_most(0, 0.8), 1.2 * law.left_at_most(0, 0.8));
  EXPECT_GT(with_odd.left_at_most(30, 0.9), 3 * law.left_at_most(30, 0.9)) << "it must be one of the odd ones";
  EXPECT_GE(LengthLaw({.usual = 1e-3, .scatter = 0}).left_at_most(1e9, 0.9), 0) << "beyond all that it can say";
}

TEST(LengthCurve, WhatIsYoungerThanAllThatEndedChangesNothing) {
  const std::vector<double> young{1, 2, 3};
  EXPECT_NEAR(LengthCurve(of({10, 20, 30}), young).mean(), 20, 1e-9);
}

TEST(LengthCurve, WhatIsOlderThanAllThatEndedCounts) {
  const std::vector<double> old{90};
  const LengthCurve curve(of({10}), old);
  EXPECT_GT(curve.mean(), 50);
  EXPECT_GE(curve.left(90), 9.9);
  EXPECT_GT(curve.left_at_most(200, 0.9), 20) << "older than anything expected";
}

// Tasks of very different lengths, all begun at once and looked at before the longest have ended.
TEST(LengthCurve, TheMeanOfThoseThatEndedIsTooLowAndThisIsRatherTooHigh) {
  std::mt19937 random(7);
  std::exponential_distribution<double> length(1.0 / 100);
  Lengths ended;
  std::vector<double> running;
  double sum = 0, count = 0;
  for (int i = 0; i < 2000; ++i) {
    const double one = length(random), begun = 300.0 * i / 2000;
    if (one > 300 - begun) {
      running.push_back(300 - begun);
    } else {
      ended.add(one), sum += one, ++count;
    }
  }
  std::sort(running.begin(), running.end());
  EXPECT_LT(sum / count, 80);
  const double mean = LengthCurve(ended, running).mean();
  EXPECT_GT(mean, 95);
  EXPECT_LT(mean, 160) << "the tail is taken for a heavy one, which these do not have";
}

}  // namespace
}  // namespace headroom::scheduler
