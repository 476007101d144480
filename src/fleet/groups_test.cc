// SPDX-License-Identifier: Apache-2.0
#include "fleet/groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headroom::fleet {
namespace {

using ::testing::ElementsAre;

FleetJob job(const std::string& path, const std::string& user, Nanos held, Nanos back,
             std::optional<Cause> cause = {}) {
  FleetJob made{.path = path};
  made.names[static_cast<std::size_t>(FleetBy::kUser)] = user;
  made.accounts[static_cast<std::size_t>(Account::kUseful)] = held * kSecond / 2;
  made.accounts[static_cast<std::size_t>(Account::kInput)] = held * kSecond - held * kSecond / 2;
  made.back_high = back * kSecond;
  if (cause) made.losses = {{cause, "title of " + path, back * kSecond, back * kSecond, 1}};
  return made;
}

TEST(FleetGroups, WhatCouldBringMostBackComesFirstAndTheTotalIsTheSum) {
  Fleet fleet;
  fleet.jobs = {job("a", "alice", 100, 5), job("b", "bob", 10, 8), job("c", "alice", 50, 1), job("d", "", 7, 0)};
  sum_up(20, fleet);
  ASSERT_EQ(fleet.groups.size(), 3U);
  EXPECT_EQ(fleet.groups[0].name, "bob");
  EXPECT_EQ(fleet.groups[1].name, "alice");
  EXPECT_EQ(fleet.groups[1].jobs, 2U);
  EXPECT_EQ(fleet.groups[1].held(), 150 * kSecond);
  EXPECT_EQ(fleet.groups[1].look_at, "a");
  EXPECT_EQ(fleet.groups[2].name, "");
  EXPECT_EQ(fleet.total.held(), 167 * kSecond);
  EXPECT_EQ(fleet.total.back_high, 14 * kSecond);
  EXPECT_EQ(fleet.total.jobs, 4U);
  EXPECT_EQ(fleet.total.look_at, "b");
}

TEST(FleetGroups, BeyondTheTopTheRestIsOneRowAndStaysInTheTotal) {
  Fleet fleet;
  fleet.jobs = {job("a", "alice", 100, 5), job("b", "bob", 10, 8), job("c", "carol", 50, 1)};
  sum_up(1, fleet);
  ASSERT_EQ(fleet.groups.size(), 1U);
  EXPECT_EQ(fleet.not_listed, 2U);
  EXPECT_EQ(fleet.others.held(), 150 * kSecond);
  EXPECT_EQ(fleet.others.jobs, 2U);
  EXPECT_EQ(fleet.groups[0].held() + fleet.others.held(), fleet.total.held());
}

TEST(FleetGroups, OneCauseOfSeveralJobsIsOneLossByTheNameOfTheCause) {
  Fleet fleet;
  fleet.jobs = {job("a", "alice", 100, 5, Cause::kSlowStorage), job("b", "alice", 10, 8, Cause::kSlowStorage),
                job("c", "alice", 10, 9, Cause::kHang)};
  fleet.jobs[0].losses.push_back({std::nullopt, "a set", 90 * kSecond, 0, 1});
  fleet.jobs[0].losses.push_back({Cause::kSlowStorage, "a part", 1 * kSecond, 1 * kSecond, 1});
  sum_up(20, fleet);
  const auto& losses = fleet.groups.at(0).losses;
  ASSERT_EQ(losses.size(), 3U);
  EXPECT_EQ(losses[0].cause, Cause::kSlowStorage);
  EXPECT_EQ(losses[0].jobs, 2U) << "a job counts once";
  EXPECT_EQ(losses[0].at_most, 14 * kSecond);
  EXPECT_EQ(losses[0].title, info(Cause::kSlowStorage).words);
  EXPECT_EQ(losses[1].title, "title of c");
  EXPECT_FALSE(losses[2].cause) << "what is not told comes last, however much it costs";
}

AveragedJob averaged(const std::string& id, const std::string& user, Nanos held, double mean) {
  AveragedJob made{.id = id, .span = held * kSecond, .gpus = 1, .held = held * kSecond, .measured = held * kSecond};
  made.names[static_cast<std::size_t>(FleetBy::kUser)] = user;
  made.utilised = static_cast<Nanos>(mean * static_cast<double>(made.measured));
  if (mean == 0) made.zero = made.held;
  return made;
}

TEST(FleetAverages, SumsGroupsAndKeepsTheJobsToLookAt) {
  AverageSum sum(FleetBy::kUser, 1, 2);
  for (const AveragedJob& one : {averaged("1", "alice", 100, 0.9), averaged("2", "alice", 10, 0),
                                 averaged("3", "bob", 400, 0.25), averaged("4", "carol", 30, 0.5)})
    sum.add(one);
  const FleetAverages all = sum.take({.too_short = 3});
  EXPECT_EQ(all.counts.jobs, 4U);
  EXPECT_EQ(all.counts.too_short, 3U);
  ASSERT_EQ(all.groups.size(), 1U);
  EXPECT_EQ(all.groups[0].name, "bob");
  EXPECT_EQ(all.groups[0].low, 400 * kSecond) << "25 % is low";
  EXPECT_EQ(all.not_listed, 2U);
  EXPECT_EQ(all.others.held, 140 * kSecond);
  EXPECT_EQ(all.total.zero, 10 * kSecond);
  EXPECT_EQ(all.total.low, 410 * kSecond);
  std::vector<std::string> ids;
  for (const AveragedJob& one : all.look_at) ids.push_back(one.id);
  EXPECT_THAT(ids, ElementsAre("3", "4")) << "the time without kernels decides, not the lowest mean";
}

TEST(FleetAverages, WhatHasNoMeanIsNeitherLowNorHigh) {
  AverageSum sum(FleetBy::kUser, 9, 9);
  AveragedJob job = averaged("1", "alice", 100, 0.5);
  job.measured = job.utilised = 0;
  sum.add(job);
  const FleetAverages all = sum.take({});
  EXPECT_EQ(all.total.low, 0);
  EXPECT_EQ(all.total.without_kernels(), 0);
}

}  // namespace
}  // namespace headroom::fleet
