// SPDX-License-Identifier: Apache-2.0
#include "tune/curves.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace headroom::tune {
namespace {

std::vector<StepReport> curve_of(const std::vector<double>& values, std::int64_t stride = 1) {
  std::vector<StepReport> curve;
  for (const double value : values) {
    curve.push_back({.step = stride * (static_cast<std::int64_t>(curve.size()) + 1), .value = value});
  }
  return curve;
}

// Falls to a turn and rises again, with noise.
std::vector<StepReport> like_a_loss(std::size_t length, Random& random) {
  const double level = random.uniform(0.5, 1.5), turn = random.uniform(5, 10);
  std::vector<double> values;
  for (std::size_t e = 1; e <= length; ++e) {
    const auto at = static_cast<double>(e);
    values.push_back(level + std::exp(-at / 3) + 0.03 * std::max(0.0, at - turn) + 0.03 * random.normal());
  }
  return curve_of(values);
}

TEST(Curves, WhatWasObservedStays) {
  Random random(1);
  std::vector<std::vector<StepReport>> curves;
  for (int i = 0; i < 20; ++i) curves.push_back(like_a_loss(i < 10 ? 40 : 12, random));
  const CurveBook book(curves, Direction::kMinimize);
  for (std::size_t i = 10; i < 20; ++i) {
    std::vector<StepReport> extended = curves[i];
    book.extend(extended, 40, i, random);
    ASSERT_EQ(extended.size(), 40u);
    EXPECT_TRUE(std::equal(curves[i].begin(), curves[i].end(), extended.begin()));
    for (std::size_t n = 1; n < extended.size(); ++n) EXPECT_EQ(extended[n].step, extended[n - 1].step + 1);
  }
}

TEST(Curves, CutCurvesGoOnAsTheirLikes) {
  Random random(2);
  std::vector<std::vector<StepReport>> curves, whole;
  for (int i = 0; i < 120; ++i) {
    whole.push_back(like_a_loss(60, random));
    curves.push_back(whole.back());
    if (i >= 12) curves.back().resize(10 + static_cast<std::size_t>(i) % 8);
  }
  const CurveBook book(curves, Direction::kMinimize);
  double off = 0, spread = 0, count = 0;
  for (std::size_t i = 12; i < curves.size(); ++i) {
    std::vector<StepReport> extended = curves[i];
    book.extend(extended, 60, i, random);
    const double error = extended.back().value - whole[i].back().value;
    off += error;
    spread += error * error;
    ++count;
  }
  EXPECT_NEAR(off / count, 0, 0.15);           // they rise by 1.5 on average
  EXPECT_LT(std::sqrt(spread / count), 0.6);   // … by between 1.2 and 1.9, at a pace that the cut hides
  EXPECT_GT(std::sqrt(spread / count), 0.02);  // chance, and no copy of the truth
}

TEST(Curves, AnotherSeedGoesOnDifferently) {
  Random random(3);
  std::vector<std::vector<StepReport>> curves;
  for (int i = 0; i < 20; ++i) curves.push_back(like_a_loss(i < 15 ? 30 : 8, random));
  const CurveBook book(curves, Direction::kMinimize);
  std::vector<StepReport> one = curves[19], again = curves[19], other = curves[19];
  Random first(7), second(7), third(8);
  book.extend(one, 30, 19, first);
  book.extend(again, 30, 19, second);
  book.extend(other, 30, 19, third);
  EXPECT_EQ(one, again);
  EXPECT_NE(one, other);
}

TEST(Curves, WithoutAnExampleTheLastValueStays) {
  const CurveBook book({curve_of({3, 2})}, Direction::kMinimize);
  std::vector<StepReport> curve = curve_of({3, 2});
  Random random(1);
  book.extend(curve, 4, 0, random);
  ASSERT_EQ(curve.size(), 4u);
  EXPECT_EQ(curve.back().value, 2);
  EXPECT_EQ(curve.back().step, 4);
}

TEST(Curves, StepsAreThoseOfTheLongestCurve) {
  const CurveBook book({curve_of({4, 3, 2, 1}, 5), curve_of({4, 3}, 5)}, Direction::kMinimize);
  std::vector<StepReport> curve = curve_of({4, 3}, 5);
  Random random(1);
  book.extend(curve, 4, 1, random);
  EXPECT_EQ(curve[2].step, 15);
  EXPECT_EQ(curve[3].step, 20);
}

TEST(Curves, NothingFiniteComesOutOfNaNs) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const CurveBook book({curve_of({1, nan, inf, 2, 3}), curve_of({nan, nan}), curve_of({5, 4})}, Direction::kMaximize);
  Random random(1);
  std::vector<StepReport> curve = curve_of({5, 4});
  book.extend(curve, 5, 2, random);
  for (const StepReport& report : curve) EXPECT_TRUE(std::isfinite(report.value));
  std::vector<StepReport> none = curve_of({nan, nan}), empty;
  book.extend(none, 5, 1, random);
  EXPECT_EQ(none.size(), 5u);
  book.extend(empty, 5, 1, random);
  EXPECT_TRUE(empty.empty());
}

}  // namespace
}  // namespace headroom::tune
