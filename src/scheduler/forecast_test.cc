// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "scheduler/forecast.h"
#include "scheduler/testing/builders.h"

namespace headroom::scheduler {
namespace {

using testing::Batch;
using testing::kGib;
using testing::task;

TEST(Forecast, TheEndIsTheWorkOrTheLongestTask) {
  Forecast view{.work_seconds = 1000, .critical_seconds = {0, 0}, .speeds = {1.0, 0.8, 0.6, 0.48}, .full = 4};
  EXPECT_NEAR(view.end(), 1.05 * 1000 / (2 * 4 * 0.48), 1) << "both GPUs full";
  view.critical_seconds = {900, 0};
  EXPECT_NEAR(view.end(), 900, 1) << "nothing is faster than alone";
  view.critical_seconds = {230, 0};
  const double with_one_long = view.end();
  EXPECT_GT(with_one_long, 1.05 * 1000 / (2 * 4 * 0.48) + 5) << "its GPU cannot be full all the while";
  view.critical_seconds = {230, 230};
  EXPECT_GT(view.end(), with_one_long + 5);
}

TEST(Forecast, FewerBesideATaskThatNeedsItsSpeed) {
  const Forecast view{.speeds = {1.0, 0.8, 0.6, 0.48}, .full = 4};
  EXPECT_EQ(view.most(0.9), 1);
  EXPECT_EQ(view.most(0.7), 2);
  EXPECT_EQ(view.most(0.1), 4);
}

Batch known_before(int gpus) {
  Batch batch(gpus);
  for (const GroupIndex group : {0, 1})
    batch.setup.history.push_back({.group = group,
                                   .gpu_model = "Model",
                                   .finished = 20,
                                   .peak_gpu_bytes = 5 * kGib,
                                   .gpu_util_ratio = 0.6,
                                   .cores = 0.5,
                                   .startup = kSecond,
                                   .duration = 100 * kSecond});
  return batch;
}

std::size_t long_ones_on(const Batch& batch, GpuIndex gpu) {
  std::size_t count = 0;
  for (const auto& [index, start] : batch.running) count += index < 2 && start.gpus.front() == gpu ? 1u : 0u;
  return count;
}

TEST(Forecast, TwoLongTasksShareAGpuAndLeaveTheOtherToTheShortOnes) {
  for (const Nanos unit : {kSecond, 2'000'000 * kSecond}) {  // all together they may be longer than Nanos can say
    Batch batch = known_before(2);
    batch.add(2, task().expected(940 * unit)).add(100, task().group(1).expected(40 * unit)).begin();
    EXPECT_EQ(std::max(long_ones_on(batch, 0), long_ones_on(batch, 1)), 2u) << unit;
    const GpuIndex theirs = long_ones_on(batch, 0) == 2 ? 0 : 1;
    EXPECT_LT(batch.planner().gpu(theirs).running.size(), batch.planner().gpu(1 - theirs).running.size()) << unit;
  }
}

TEST(Forecast, WithoutKnownLengthsTheLeastLoadedGpuTakesTheNext) {
  Batch batch = known_before(2);
  batch.add(2, task()).add(100, task().group(1)).begin();
  EXPECT_EQ(long_ones_on(batch, 0), 1u);
  EXPECT_EQ(long_ones_on(batch, 1), 1u);
}

TEST(Forecast, NoGpuIdlesForTheSakeOfABetterOne) {
  for (const int gpus : {2, 3, 5}) {
    Batch batch = known_before(gpus);
    batch.add(gpus, task().expected(900 * kSecond)).add(1, task().expected(10 * kSecond)).begin();
    for (GpuIndex gpu = 0; gpu < gpus; ++gpu) EXPECT_FALSE(batch.planner().gpu(gpu).running.empty()) << gpus;
  }
}

TEST(Forecast, EqualLongTasksAreNotHeldBack) {
  Batch batch = known_before(2);
  for (int i = 0; i < 8; ++i) batch.add(1, task().expected((1500 + 100 * i) * kSecond));
  batch.begin();
  EXPECT_EQ(batch.running.size(), 8u) << "the last of them would begin when the first have ended";
}

}  // namespace
}  // namespace headroom::scheduler
