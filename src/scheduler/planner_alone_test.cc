// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "scheduler/testing/builders.h"

namespace headroom::scheduler {
namespace {

using testing::Batch;
using testing::kGib;
using ::testing::SizeIs;
using testing::task;

TEST(Alone, TheRateOfOnePerGpuRestsOnTasksThatWereAlone) {
  Batch batch(1);
  batch.add(3, task()).begin();
  batch.learn(10 * kGib);  // 12 s at full speed; the others join the first after 6 s
  ASSERT_THAT(batch.running_tasks(), SizeIs(3));
  for (int second = 0; second < 10; ++second) batch.wait(kSecond).read(10 * kGib, 0.15);  // at half its speed
  for (TaskIndex i = 0; i < 3; ++i) batch.end(i);
  const auto rates = batch.planner().alone_rates();
  ASSERT_THAT(rates, SizeIs(1));
  EXPECT_EQ(rates[0].gpu_model, "Model");
  EXPECT_EQ(rates[0].alone_attempts, 1);
  EXPECT_EQ(rates[0].tasks + rates[0].unmeasured_tasks, 3);
  EXPECT_EQ(rates[0].tasks, 3);
  EXPECT_NEAR(rates[0].alone_seconds, (12 + 5) + 2 * (6 + 5), 2);
}

TEST(Alone, WhatWasNeverAloneIsNotTold) {
  Batch batch(1);
  batch.setup.pack = PackMode::kFixed;
  batch.setup.per_gpu = 2;
  batch.add(2, task()).begin();
  for (int second = 0; second < 20; ++second) batch.wait(kSecond).read(10 * kGib, 0.3);
  batch.end(0).end(1);
  const auto rates = batch.planner().alone_rates();
  ASSERT_THAT(rates, SizeIs(1));
  EXPECT_EQ(rates[0].tasks, 0);
  EXPECT_EQ(rates[0].unmeasured_tasks, 2);
  EXPECT_EQ(rates[0].alone_attempts, 0);
  EXPECT_FALSE(batch.planner().learned().at(0).duration) << "in company is not alone";
}

AloneTime alone_of(const Batch& batch) { return batch.all<CloseAttempt>().at(0).alone; }

TEST(Alone, AnAttemptWithoutCompanyTookWhatItTook) {
  Batch batch(1);
  batch.add(1, task()).begin().wait(7 * kSecond);
  const auto now = batch.planner().alone_time(1, batch.now);
  ASSERT_TRUE(now);
  EXPECT_DOUBLE_EQ(now->done_seconds, 7);
  EXPECT_DOUBLE_EQ(now->speed, 1);
  batch.wait(kSecond).end(0);
  EXPECT_DOUBLE_EQ(alone_of(batch).done_seconds, 8);
  EXPECT_TRUE(alone_of(batch).measured);
  EXPECT_FALSE(batch.planner().alone_time(1, batch.now)) << "it runs no more";
}

TEST(Alone, AtHalfItsSpeedAnAttemptTakesTwiceAsLong) {
  Batch batch(1);
  batch.add(3, task()).begin().learn(10 * kGib);
  for (int second = 0; second < 10; ++second) batch.wait(kSecond).read(10 * kGib, 0.15);
  batch.wait(2 * kSecond);  // since the last reading as before it
  const double before = batch.planner().alone_time(2, batch.now)->done_seconds;
  EXPECT_NEAR(before, (6 + 5) * 18.0 / 16.0, 1);
  batch.end(1);
  EXPECT_DOUBLE_EQ(alone_of(batch).done_seconds, before);
  EXPECT_TRUE(alone_of(batch).measured);
}

TEST(Alone, BesideBusyTasksTheSpeedIsPredictedAndWhatNobodySampledIsNotMeasured) {
  Batch batch(1);
  batch.setup.pack = PackMode::kFixed;
  batch.setup.per_gpu = 2;
  batch.setup.history = {{.group = 0, .gpu_model = "Model", .finished = 9, .gpu_util_ratio = 1.0}};
  batch.add(2, task()).begin().wait(10 * kSecond);
  const auto now = batch.planner().alone_time(1, batch.now);
  ASSERT_TRUE(now);
  EXPECT_NEAR(now->speed, 0.5, 0.05);
  EXPECT_NEAR(now->done_seconds, 5, 0.5);
  EXPECT_FALSE(now->measured);
  batch.end(0);
  EXPECT_FALSE(alone_of(batch).measured);
  EXPECT_NEAR(alone_of(batch).done_seconds, 5, 0.5);
}

TEST(Alone, OfWhatNothingIsKnownCompanyIsNotHeldToSlowIt) {
  Batch batch(1);
  batch.setup.pack = PackMode::kFixed;
  batch.setup.per_gpu = 4;
  batch.add(4, task()).begin().wait(10 * kSecond).end(0);
  EXPECT_DOUBLE_EQ(alone_of(batch).done_seconds, 10);
  EXPECT_FALSE(alone_of(batch).measured);
}

}  // namespace
}  // namespace headroom::scheduler
