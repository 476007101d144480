// SPDX-License-Identifier: Apache-2.0
#include "tune/first_trials.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tune/study_facts.h"
#include "tune/study_testing.h"

namespace headroom::tune {
namespace {

using testing::at;
using testing::StudyBuilder;

TEST(FirstTrials, AreThoseThatEndedFirst) {
  const std::vector<TrialTimes> trials{{.begin = 0, .end = 100},
                                       {.begin = 0, .end = 20, .pruned = true},
                                       {.begin = 20, .end = 50, .pruned = true},
                                       {.begin = 50, .end = 90, .ended = false}};
  const auto figures = first_trials(trials, {1, 2, 3, 4});
  ASSERT_EQ(figures.size(), 3U) << "three ended";
  EXPECT_EQ(figures[1].trials, 2);
  EXPECT_EQ(figures[1].lengths, (std::vector<double>{20, 30}));
  EXPECT_EQ(figures[1].pruned, 2);
  EXPECT_DOUBLE_EQ(figures[1].trials_per_hour, 2 / 50.0 * 3600);
  EXPECT_DOUBLE_EQ(figures[1].at_once, (50 + 20 + 30) / 50.0);
  EXPECT_DOUBLE_EQ(figures[2].at_once, (100 + 20 + 30 + 40) / 100.0);
  EXPECT_TRUE(first_trials({}, {1}).empty());
}

TEST(FirstTrials, OnlyThoseThatCountAreCountedAndTheOthersAreOpenBeside) {
  const std::vector<TrialTimes> trials{
      {.begin = 0, .end = 30, .ended = false, .counts = false}, {.begin = 10, .end = 20}, {.begin = 20, .end = 40}};
  const auto figures = first_trials(trials, {2});
  ASSERT_EQ(figures.size(), 1U);
  EXPECT_DOUBLE_EQ(figures[0].trials_per_hour, 2 / 30.0 * 3600) << "from the first that counts";
  EXPECT_DOUBLE_EQ(figures[0].at_once, (20 + 10 + 20) / 30.0);
}

TEST(FirstTrials, OneThatBeginsAsAnotherEndsIsNotBesideIt) {
  const std::vector<TrialTimes> trials{{.begin = 0, .end = 10, .memory = 3},
                                       {.begin = 10, .end = 20, .memory = 5},
                                       {.begin = 15, .end = 25, .memory = 1}};
  EXPECT_EQ(most_together(trials, 25).trials, 2);
  EXPECT_EQ(most_together(trials, 25).memory, 6);
  EXPECT_EQ(most_together(trials, 15).memory, 5) << "what began later is not there yet";
}

// Two workers, 40 trials of 60 to 99 s, every second one pruned.
Study steady() {
  StudyBuilder builder;
  double free[2] = {0, 0};
  for (int i = 0; i < 40; ++i) {
    double& worker = free[i % 2];
    const double end = worker + 60 + i;
    builder.add(i % 2 ? TrialState::kPruned : TrialState::kComplete, worker, end, 5);
    worker = end;
  }
  return builder.study;
}

TEST(MeasuredFirst, HasARangeAroundEachFigure) {
  const Study study = steady();
  const StudyReport report = study_facts(study, {.now = at(1e5)});
  EXPECT_EQ(ended_since(report, 0), 38) << "the last two ended with no other to come";
  const auto first = measured_first(study, report, 0, 10);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->trials, 10);
  // The last of ten is the fifth trial of the second worker: 61 + 63 + 65 + 67 + 69 s.
  EXPECT_DOUBLE_EQ(first->trials_per_hour.value, 10 / 325.0 * 3600);
  EXPECT_LT(first->trials_per_hour.low, first->trials_per_hour.value);
  EXPECT_GT(first->trials_per_hour.high, first->trials_per_hour.value);
  EXPECT_DOUBLE_EQ(first->pruned_share.value, 0.5);
  EXPECT_NEAR(first->pruned_share.low, 0.269, 0.001);  // Wilson's, of 5 of 10
  EXPECT_NEAR(first->pruned_share.high, 0.731, 0.001);
  EXPECT_NEAR(first->trial_seconds.value, 64, 1e-9);
  EXPECT_NEAR(first->trial_seconds.low, 62, 1e-9);
  EXPECT_NEAR(first->at_once.value, 2, 0.01);
  EXPECT_EQ(first->at_once.high, 2);
  EXPECT_FALSE(measured_first(study, report, 0, 41)) << "so many have not ended";
  EXPECT_FALSE(measured_first(study, report, 0, 0));
}

TEST(MeasuredFirst, OfAStudyThatWentOnCountsFromATrialOn) {
  const Study study = steady();
  const StudyReport report = study_facts(study, {.now = at(1e5)});
  EXPECT_EQ(ended_since(report, 30), 8);
  const auto first = measured_first(study, report, 30, 10);
  ASSERT_TRUE(first);
  EXPECT_NEAR(first->trials_per_hour.value, 10 / (91 + 93 + 95 + 97 + 99.0) * 3600, 5) << "not from the study's begin";
  EXPECT_EQ(first->at_once.high, 2);
}

// A machine that sleeps for ten hours makes no trial slower.
TEST(MeasuredFirst, LeavesOutStandstills) {
  Study study = steady();
  const double awake = measured_first(study, study_facts(study, {.now = at(1e5)}), 0, 40)->trials_per_hour.value;
  for (Trial& trial : study.trials)
    for (auto* time : {&trial.start, &trial.complete})
      if (**time > at(1000)) **time += 36'000 * kSecond;
  const double slept = measured_first(study, study_facts(study, {.now = at(1e5)}), 0, 40)->trials_per_hour.value;
  EXPECT_NEAR(slept, awake, 0.1 * awake);
}

}  // namespace
}  // namespace headroom::tune
