// SPDX-License-Identifier: Apache-2.0
#include "tune/best.h"

#include <gtest/gtest.h>

#include <random>

#include "tune/study_testing.h"

namespace headroom::tune {
namespace {

using testing::at;
using testing::kInfinity;
using testing::StudyBuilder;

std::vector<std::int64_t> numbers(const std::vector<BestPoint>& best) {
  std::vector<std::int64_t> trials;
  for (const BestPoint& point : best) trials.push_back(point.trial);
  return trials;
}

std::vector<BestPoint> best_of(const Study& study) { return best_over_time(study, timeline(study, {.now = at(1e6)})); }

TEST(Best, GoesByTheEndAndCountsAllThatFinished) {
  StudyBuilder builder;
  builder.add(TrialState::kComplete, 0, 50).values = {3};
  builder.add(TrialState::kComplete, 0, 10).values = {5};
  builder.add(TrialState::kPruned, 10, 20).values = {1};
  builder.add(TrialState::kComplete, 20, 60).values = {3};
  const auto best = best_of(builder.study);
  ASSERT_EQ(numbers(best), (std::vector<std::int64_t>{1, 0}));
  EXPECT_EQ(best[0].seconds, 10);
  EXPECT_EQ(best[0].trials_finished, 1);
  EXPECT_EQ(best[1].trials_finished, 3);
  EXPECT_EQ(best[1].value, 3);
}

TEST(Best, InfinitiesHaveTheirPlace) {
  StudyBuilder down;
  down.add(TrialState::kComplete, 0, 1).values = {kInfinity};
  down.add(TrialState::kComplete, 1, 2).values = {4};
  EXPECT_EQ(numbers(best_of(down.study)), std::vector<std::int64_t>{1}) << "the worst infinity is no best value";
  down.add(TrialState::kComplete, 2, 3).values = {-kInfinity};
  EXPECT_EQ(numbers(best_of(down.study)), (std::vector<std::int64_t>{1, 2}));
  StudyBuilder up({Direction::kMaximize});
  up.add(TrialState::kComplete, 0, 1).values = {-kInfinity};
  up.add(TrialState::kComplete, 1, 2).values = {4};
  up.add(TrialState::kComplete, 2, 3).values = {7};
  EXPECT_EQ(numbers(best_of(up.study)), (std::vector<std::int64_t>{1, 2}));
}

TEST(Best, WhatBreaksAConstraintDoesNotCount) {
  StudyBuilder builder;
  builder.add(TrialState::kComplete, 0, 1).values = {4};
  Trial& broken = builder.add(TrialState::kComplete, 1, 2);
  broken.values = {1};
  broken.constraints = {-1, 0.5};
  Trial& kept = builder.add(TrialState::kComplete, 2, 3);
  kept.values = {2};
  kept.constraints = {-1, 0};
  EXPECT_EQ(numbers(best_of(builder.study)), (std::vector<std::int64_t>{0, 2}));
}

TEST(Best, WithoutADirectionNothingIsBetter) {
  StudyBuilder builder({Direction::kNotSet});
  builder.add(TrialState::kComplete, 0, 1);
  EXPECT_TRUE(best_of(builder.study).empty());
  StudyBuilder two({Direction::kMinimize, Direction::kNotSet});
  two.add(TrialState::kComplete, 0, 1);
  EXPECT_FALSE(pareto_front(two.study));
}

bool dominates(const Study& study, const Trial& a, const Trial& b) {
  bool better = false;
  for (std::size_t k = 0; k < a.values.size(); ++k) {
    const double sign = study.directions[k] == Direction::kMaximize ? -1 : 1;
    if (sign * a.values[k] > sign * b.values[k]) return false;
    better |= sign * a.values[k] < sign * b.values[k];
  }
  return better;
}

TEST(Best, TheParetoFrontIsWhatNothingDominates) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<Direction> directions;
    for (unsigned k = 0; k < 2 + seed % 3; ++k)
      directions.push_back(random() % 2 == 0 ? Direction::kMinimize : Direction::kMaximize);
    StudyBuilder builder(directions);
    for (int i = 0; i < 80; ++i)
      for (double& value : builder.add(TrialState::kComplete, i, i + 1).values)
        value = random() % 20 == 0 ? kInfinity : static_cast<double>(random() % 12);  // many are equal
    std::vector<std::int64_t> expected;
    for (const Trial& trial : builder.study.trials)
      if (std::none_of(builder.study.trials.begin(), builder.study.trials.end(),
                       [&](const Trial& other) { return dominates(builder.study, other, trial); }))
        expected.push_back(trial.number);
    EXPECT_EQ(pareto_front(builder.study), expected) << seed;
  }
}

}  // namespace
}  // namespace headroom::tune
