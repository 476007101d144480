// SPDX-License-Identifier: Apache-2.0
#include "view/batch_trail.h"

#include <gtest/gtest.h>

namespace headroom::view {
namespace {

BatchProgress at(Nanos elapsed, std::optional<double> util, std::size_t running, std::int64_t ready = 0) {
  BatchProgress progress{.tasks = {.total = 9, .ready = ready}, .elapsed = elapsed};
  progress.gpus.push_back({.gpu = {.uuid = "GPU-0"}, .running = running, .util_ratio = util});
  return progress;
}

TEST(BatchTrail, ASampleSpeaksForTheTimeSinceTheLastOne) {
  BatchTrail trail;
  trail.add(at(1 * kSecond, 0.25, 2));
  trail.add(at(2 * kSecond, 1.0, 2));
  const Strip strip = trail.strip(0, 80);
  ASSERT_EQ(strip.bins.size(), 2U);
  EXPECT_EQ(strip.bins[0],
            (std::vector<Share>{{Account::kUnderWay, kSecond / 4}, {Account::kUnexplained, kSecond * 3 / 4}}));
  EXPECT_EQ(strip.bins[1], (std::vector<Share>{{Account::kUnderWay, kSecond}}));
}

TEST(BatchTrail, WithoutATaskAGpuIsFreeAndTheQueueSaysWhich) {
  BatchTrail trail;
  trail.add(at(1 * kSecond, 0.0, 0, 3));
  trail.add(at(2 * kSecond, 0.0, 0, 0));
  EXPECT_EQ(trail.strip(0, 80).bins[0], (std::vector<Share>{{Account::kTaskWaiting, kSecond}}));
  EXPECT_EQ(trail.strip(0, 80).bins[1], (std::vector<Share>{{Account::kNoTask, kSecond}}));
}

TEST(BatchTrail, KernelsLongAfterTheLastTaskAreOfOthers) {
  BatchTrail trail;
  trail.add(at(1 * kSecond, 1.0, 1));
  trail.add(at(2 * kSecond, 1.0, 0));  // the driver's utilisation is of a while ago
  trail.add(at(4 * kSecond, 1.0, 0));
  const Strip strip = trail.strip(0, 80);
  EXPECT_EQ(strip.bins[1].front().account, Account::kUnderWay);
  EXPECT_EQ(strip.bins[3].front().account, Account::kForeign);
}

TEST(BatchTrail, WhatNoReadingSaysIsUnobserved) {
  BatchTrail trail;
  trail.add(at(2 * kSecond, std::nullopt, 1));
  EXPECT_FALSE(trail.observed(0));
  EXPECT_EQ(trail.strip(0, 80).bins[1], (std::vector<Share>{{Account::kUnobserved, kSecond}}));
  trail.add(at(12 * kSecond, 0.0, 1));  // nobody looked for ten seconds
  EXPECT_TRUE(trail.observed(0));
  EXPECT_EQ(trail.strip(0, 80).bins[5], (std::vector<Share>{{Account::kUnobserved, kSecond}}));
  EXPECT_EQ(trail.strip(0, 80).bins[11], (std::vector<Share>{{Account::kUnexplained, kSecond}}));
}

TEST(BatchTrail, ColumnsGrowUntilTheyHoldFiveSeconds) {
  BatchTrail trail;
  trail.add(at(60 * kSecond, 0.5, 1));
  EXPECT_EQ(trail.column(60), 1 * kSecond);
  EXPECT_EQ(trail.column(30), 2 * kSecond);
  EXPECT_EQ(trail.column(10), 5 * kSecond);
  EXPECT_EQ(trail.strip(0, 10).bins.size(), 10U);
  EXPECT_TRUE(trail.strip(1, 10).bins.empty());
}

TEST(BatchTrail, HoldsSomeMinutesAndNoMore) {
  BatchTrail trail;
  for (Nanos t = kSecond; t <= 3000 * kSecond; t += kSecond) trail.add(at(t, 0.5, 1));
  const Strip strip = trail.strip(0, 500);
  EXPECT_EQ(strip.bins.size(), static_cast<std::size_t>(BatchTrail::kKept / (5 * kSecond)));
  for (const auto& bin : strip.bins) EXPECT_EQ(bin.size(), 2U);
}

}  // namespace
}  // namespace headroom::view
