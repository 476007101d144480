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

}  // namespace
}  // namespace headroom::scheduler
