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
  EXPECT_NEAR(curve.variance(), 200.0 / 3, 1e-9);
  EXPECT_NEAR(curve.left(0), 20, 1e-9);
  EXPECT_NEAR(curve.left(15), 10, 1e-9) << "the one of 10 s is out";
  EXPECT_NEAR(curve.left_at_most(0, 0.5), 20, 1e-9);
  EXPECT_NEAR(curve.left_at_most(0, 0.9), 30, 1e-9);
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
