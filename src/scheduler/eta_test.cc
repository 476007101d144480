// SPDX-License-Identifier: Apache-2.0
#include "scheduler/eta.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <random>

namespace headroom::scheduler {

namespace {

std::vector<PlannedTask> tasks_of(std::size_t count, std::optional<Nanos> expected = std::nullopt) {
  std::vector<PlannedTask> tasks(count);
  for (std::size_t i = 0; i < count; ++i) tasks[i].task = static_cast<TaskIndex>(i), tasks[i].expected = expected;
  return tasks;
}
const std::vector<Eta::Running> kTwo{{.task = 0, .done = 0}, {.task = 1, .done = 0}};

TEST(Eta, SaysNothingWhereNothingIsKnown) {
  const Eta eta(tasks_of(10));
  EXPECT_FALSE(eta.estimate(kTwo));
  EXPECT_FALSE(Eta(tasks_of(10, 5 * kSecond)).estimate({}));
}

TEST(Eta, TheFirstOfManyThatRunDoNotSpeakForAll) {
  Eta eta(tasks_of(12));
  for (TaskIndex i = 10; i < 12; ++i) eta.ended(i, kSecond);
  std::vector<Eta::Running> ten;
  for (TaskIndex i = 0; i < 10; ++i) ten.push_back({.task = i, .done = kSecond, .speed = 0.1});
  EXPECT_FALSE(eta.estimate(ten));
  EXPECT_TRUE(eta.estimate(std::span(ten).first(8)));
  eta.ended(9, 5 * kSecond);
  EXPECT_TRUE(eta.estimate(std::span(ten).first(9)));
}

TEST(Eta, ComesFromEarlierBatchesBeforeAnythingHasEnded) {
  const auto found = Eta(tasks_of(10, 6 * kSecond)).estimate(kTwo);
  ASSERT_TRUE(found);
  EXPECT_NEAR(seconds(found->left), 30, 0.1);
  EXPECT_LT(found->low, found->left);
  EXPECT_GT(found->high, found->left);
}

TEST(Eta, FollowsWhatTasksTakeNow) {
  Eta eta(tasks_of(100, 2 * kSecond));  // alone; beside others they take twice as long
  for (TaskIndex i = 2; i < 62; ++i) eta.ended(i, 4 * kSecond);
  const auto found = eta.estimate(kTwo);
  ASSERT_TRUE(found);
  EXPECT_NEAR(seconds(found->left), 40 * 4 / 2, 5);
}

TEST(Eta, CountsWhatRunsAsPartlyDone) {
  Eta eta(tasks_of(4));
  eta.ended(2, 10 * kSecond);
  eta.ended(3, 10 * kSecond);
  const std::vector<Eta::Running> running{{.task = 0, .done = 4 * kSecond}, {.task = 1, .done = 8 * kSecond}};
  EXPECT_NEAR(seconds(eta.estimate(running)->left), 6, 0.1);  // the one that just began
}

TEST(Eta, TasksThatShareAGpuTakeLonger) {
  Eta eta(tasks_of(8));
  for (TaskIndex i = 4; i < 8; ++i) eta.ended(i, 10 * kSecond);
  std::vector<Eta::Running> four;
  for (TaskIndex i = 0; i < 4; ++i) four.push_back({.task = i, .done = 0, .speed = 0.25});
  EXPECT_NEAR(seconds(eta.estimate(four)->left), 40, 0.1);
}

TEST(Eta, ATaskThatOverrunsIsNotAboutToEnd) {
  Eta eta(tasks_of(2));
  eta.ended(1, 10 * kSecond);
  const std::vector<Eta::Running> late{{.task = 0, .done = 90 * kSecond}};
  const auto found = eta.estimate(late);
  EXPECT_GE(seconds(found->left), 9.9);
  EXPECT_LE(seconds(found->left), 40) << "nor is all that it took a sign of more";
  EXPECT_GE(found->high, found->left);
}

// The short ones end first: what still runs says that they are not all there is.
TEST(Eta, WhatRunsLongerThanAllThatEndedIsNotLeftOut) {
  Eta eta(tasks_of(20));
  for (TaskIndex i = 4; i < 8; ++i) eta.ended(i, 10 * kSecond);
  std::vector<Eta::Running> beginning, far;
  for (TaskIndex i = 0; i < 4; ++i) beginning.push_back({.task = i}), far.push_back({.task = i, .done = 60 * kSecond});
  EXPECT_GT(seconds(eta.estimate(far)->left), 1.5 * seconds(eta.estimate(beginning)->left));
}

// Seven tasks on two GPUs, of which one takes four times as long as those that ended: each range holds the truth.
TEST(Eta, OfFewTasksOneMayTakeFarLonger) {
  const auto holds = [](const Eta& eta, std::span<const Eta::Running> running, double truth) {
    const auto found = eta.estimate(running);
    ASSERT_TRUE(found);
    EXPECT_LT(seconds(found->low), truth);
    EXPECT_GT(seconds(found->high), truth);
    EXPECT_LT(found->low, found->left);
    EXPECT_LT(found->left, found->high);
  };
  constexpr Nanos kMs = kMillisecond;
  Eta eta(tasks_of(7));
  for (const TaskIndex alone : {0u, 1u}) eta.ended(alone, 2200 * kMs);
  std::vector<Eta::Running> five;
  for (TaskIndex i = 2; i < 7; ++i) five.push_back({.task = i, .done = 290 * kMs, .speed = 0.8});
  holds(eta, five, 7.9);
  for (const TaskIndex failed : {3u, 4u}) eta.ended(failed, std::nullopt);
  const std::vector<Eta::Running> three{{.task = 2, .done = 2100 * kMs, .speed = 0.8},
                                        {.task = 5, .done = 800 * kMs, .speed = 0.8},
                                        {.task = 6, .done = 2800 * kMs}};
  holds(eta, three, 5.4);
  eta.ended(2, 2200 * kMs), eta.ended(5, std::nullopt);
  const std::vector<Eta::Running> last{{.task = 6, .done = 5300 * kMs}};
  holds(eta, last, 2.9);
  const std::vector<Eta::Running> nearly{{.task = 6, .done = 7700 * kMs}};
  holds(eta, nearly, 0.5);
}

// Two groups of equal tasks, of which one leaves the machine to four at a time and the other to one.
TEST(Eta, CheapWorkPassesFasterThanDearWork) {
  std::vector<PlannedTask> tasks = tasks_of(80, 10 * kSecond);
  for (std::size_t i = 40; i < 80; ++i) tasks[i].group = 1;
  const auto left = [&](std::vector<double> prices) {
    Eta eta(tasks);
    Nanos now = 0;
    for (TaskIndex first = 0; first < 40; first += 4) {  // the cheap ones, four at a time
      std::vector<Eta::Running> running;
      for (TaskIndex i = first; i < first + 4; ++i) running.push_back({.task = i});
      eta.observe(now, running, prices);
      for (TaskIndex i = first; i < first + 4; ++i) eta.ended(i, 10 * kSecond);
      now += 10 * kSecond;
    }
    const std::vector<Eta::Running> four{{.task = 40, .speed = 0.25}};
    eta.observe(now, four, prices);
    return seconds(eta.estimate(four)->left);
  };
  EXPECT_LT(left({}), 150) << "as fast as until now";
  EXPECT_NEAR(left({0.25, 1}), 400, 60);
}

// What moved much is expected to move again.
TEST(Eta, AnExpectationThatWasRevisedIsNotSaidNarrowly) {
  const auto width = [](double slower) {
    Eta eta(tasks_of(400, 10 * kSecond));
    Nanos now = 0;
    for (TaskIndex i = 0; i < 100; ++i) {
      const std::vector<Eta::Running> one{{.task = i}};
      eta.observe(now, one);
      eta.ended(i, 10 * kSecond);
      now += static_cast<Nanos>((i < 70 ? 10 : 10 * slower) * 1e9);
    }
    const std::vector<Eta::Running> one{{.task = 100}};
    eta.observe(now, one);
    const auto found = eta.estimate(one);
    return static_cast<double>(found->high) / static_cast<double>(found->low);
  };
  EXPECT_LT(width(1), 1.3);
  EXPECT_GT(width(3) - 1, 2 * (width(1) - 1));
}

TEST(Eta, IsNeverShorterThanTheLongestThatRuns) {
  auto tasks = tasks_of(10, 1 * kSecond);
  tasks[0].expected = 100 * kSecond;
  EXPECT_GE(seconds(Eta(tasks).estimate(kTwo)->left), 99.9);
}

TEST(Eta, LeavesOutTasksThatHaveEnded) {
  auto tasks = tasks_of(10, 6 * kSecond);
  for (std::size_t i = 4; i < 10; ++i) tasks[i].state = TaskState::kSucceeded;
  Eta eta(tasks);
  EXPECT_NEAR(seconds(eta.estimate(kTwo)->left), 12, 0.1);
  eta.ended(2, std::nullopt);  // it failed
  eta.ended(2, 1 * kSecond);   // and is not counted again
  EXPECT_NEAR(seconds(eta.estimate(kTwo)->left), 9, 0.1);
}

TEST(Eta, WhatIsLongerThanNanosCanSayIsTheLongestThereIs) {
  std::vector<PlannedTask> tasks = tasks_of(20);
  for (PlannedTask& task : tasks) task.expected = 1'000'000'000 * kSecond;
  const std::vector<Eta::Running> running{{.task = 0, .done = 0}};
  const auto found = Eta(tasks).estimate(running);
  ASSERT_TRUE(found);
  constexpr Nanos kYear = 365 * 86400 * kSecond;
  EXPECT_GT(found->low, 250 * kYear);
  EXPECT_GE(found->left, found->low);
  EXPECT_GE(found->high, found->left);
}

// The interval holds the truth about as often as it says: simulated batches of tasks whose lengths scatter.
TEST(Eta, TheRangeHoldsTheTruth) {
  int held = 0;
  constexpr int kBatches = 200;
  for (int seed = 0; seed < kBatches; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::lognormal_distribution<double> length(1.0, 0.5);
    Eta eta(tasks_of(60));
    for (TaskIndex i = 0; i < 30; ++i) eta.ended(i, static_cast<Nanos>(length(random) * 1e9));
    double truth = 0;
    for (int i = 30; i < 60; ++i) truth += length(random);
    const std::vector<Eta::Running> running{{.task = 30, .done = 0}};
    const auto found = eta.estimate(running);
    ASSERT_TRUE(found);
    held += seconds(found->low) <= truth && truth <= seconds(found->high) ? 1 : 0;
  }
  EXPECT_GE(held, kBatches * 7 / 10);
  EXPECT_LT(held, kBatches);  // nor is it so wide that it says nothing
}

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
