// SPDX-License-Identifier: Apache-2.0
#include "tune/standstill.h"

#include <gtest/gtest.h>

#include <cmath>

namespace headroom::tune {
namespace {

// Two workers, trials of 60 s with 10 reports and a second between them; from `from` on all is `later` later.
std::vector<TimedTrial> two_workers(double from = 1e9, double later = 0) {
  std::vector<TimedTrial> trials;
  for (int i = 0; i < 40; ++i) {
    const double begin = 61.0 * (i / 2) + 30 * (i % 2);
    const auto put = [&](double at) { return at > from ? at + later : at; };
    trials.push_back({.begin = put(begin), .end = put(begin + 60), .reports = 10, .startup = std::nullopt});
  }
  return trials;
}

TEST(Standstill, OfAMachineThatSleptWithTrialsOpen) {
  EXPECT_TRUE(standstills(two_workers()).empty());
  const auto found = standstills(two_workers(615, 36'000));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].open, 2);
  EXPECT_NEAR(found[0].end - found[0].begin, 36'000, 60);
  EXPECT_EQ(standstills(two_workers(615, 200)).size(), 1U);
  EXPECT_TRUE(standstills(two_workers(615, 100)).empty()) << "some trials take that long";
}

TEST(Standstill, OfAStudyThatWasStopped) {
  auto trials = two_workers();
  for (std::size_t i = 20; i < trials.size(); ++i) trials[i].begin += 5'000, trials[i].end += 5'000;
  const auto found = standstills(trials);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].open, 0);
  EXPECT_NEAR(found[0].end - found[0].begin, 4'971, 0.1);
}

TEST(Standstill, ATrialWithManyReportsTakesLong) {
  std::vector<TimedTrial> trials;
  double at = 0;
  for (int i = 0; i < 60; ++i) {
    const std::size_t reports = i == 30 ? 100 : 5;
    trials.push_back(
        {.begin = at, .end = at + 10.0 * static_cast<double>(reports), .reports = reports, .startup = std::nullopt});
    at = trials.back().end + 1;
  }
  EXPECT_TRUE(standstills(trials).empty());
  trials[30].reports = 5;
  EXPECT_EQ(standstills(trials).size(), 1U);
}

TEST(Standstill, WorkersThatAreNotThereAreMissing) {
  auto trials = two_workers();
  const auto both = present(trials, 2, 50);
  EXPECT_EQ(both, std::vector<std::int64_t>(trials.size(), 2));
  EXPECT_EQ(present(trials, 8, 50), std::vector<std::int64_t>(trials.size(), 8)) << "nobody knows of the other six";
  const auto late = present(trials, 2, 10);
  EXPECT_EQ(late[0], 1) << "the second begins 30 s later";
  EXPECT_EQ(late[1], 2);
  std::erase_if(trials, [](const TimedTrial& trial) { return trial.begin > 600 && std::fmod(trial.begin, 61) > 1; });
  const auto stopped = present(trials, 2, 10);
  ASSERT_EQ(stopped.size(), trials.size());
  for (std::size_t i = 1; i < trials.size(); ++i) EXPECT_EQ(stopped[i], trials[i].begin < 650 ? 2 : 1) << i;
  EXPECT_TRUE(present({}, 2, 10).empty());
}

}  // namespace
}  // namespace headroom::tune
