// SPDX-License-Identifier: Apache-2.0
#include "fleet/coverage.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace headroom::fleet {
namespace {

Slice slice(Nanos begin, Nanos end, Account account) {
  return {.begin = begin * kSecond, .end = end * kSecond, .account = account};
}
Nanos time(const Coverage::Counted& counted, Account account) {
  return counted.accounts[static_cast<std::size_t>(account)] / kSecond;
}

TEST(Coverage, WhatNoOtherFileHasCounts) {
  Coverage coverage({}, {});
  const auto a =
      coverage.count("GPU-1", {slice(0, 6, Account::kUseful), slice(6, 10, Account::kInput)}, 100 * kSecond, "a");
  EXPECT_EQ(time(a, Account::kUseful), 6);
  EXPECT_EQ(time(a, Account::kInput), 4);
  EXPECT_EQ(a.elsewhere, 0);
  const auto later = coverage.count("GPU-1", {slice(0, 5, Account::kUseful)}, 110 * kSecond, "b");
  EXPECT_EQ(time(later, Account::kUseful), 5);
  const auto other = coverage.count("GPU-2", {slice(0, 5, Account::kUseful)}, 100 * kSecond, "c");
  EXPECT_EQ(time(other, Account::kUseful), 5);
}

TEST(Coverage, TheSameTimeOfAGpuCountsOnceByUnixTime) {
  Coverage coverage({}, {});
  (void)coverage.count("GPU-1", {slice(0, 10, Account::kUseful)}, 100 * kSecond, "a");
  EXPECT_EQ(coverage.left("GPU-1", 95 * kSecond, 115 * kSecond), 10 * kSecond);
  const auto b =
      coverage.count("GPU-1", {slice(0, 20, Account::kInput)}, 95 * kSecond, "b");  // boots have clocks of their own
  EXPECT_EQ(time(b, Account::kInput), 10);
  EXPECT_EQ(b.elsewhere, 10 * kSecond);
  EXPECT_EQ(b.with.at("a"), 10 * kSecond);
  const auto c = coverage.count("GPU-1", {slice(0, 20, Account::kInput)}, 95 * kSecond, "c");
  EXPECT_EQ(sum_of(c.accounts), 0);
  EXPECT_EQ(c.with.at("a"), 10 * kSecond);
  EXPECT_EQ(c.with.at("b"), 10 * kSecond);
}

TEST(Coverage, WithoutAnIdentityNothingMeets) {
  Coverage coverage({}, {});
  (void)coverage.count("", {slice(0, 10, Account::kUseful)}, 0, "a");
  EXPECT_EQ(time(coverage.count("", {slice(0, 10, Account::kUseful)}, 0, "b"), Account::kUseful), 10);
  EXPECT_EQ(coverage.left("", 0, 10 * kSecond), 10 * kSecond);
}

TEST(Coverage, OfASharedGpuTheOthersKernelsAreTheirsAndWaitsCountOnce) {
  Coverage coverage({}, {});
  const auto a = coverage.count(
      "GPU-1", {slice(0, 4, Account::kUseful), slice(4, 7, Account::kForeign), slice(7, 10, Account::kInput)}, 0, "a");
  EXPECT_EQ(sum_of(a.accounts), 7 * kSecond);
  EXPECT_EQ(a.foreign, 3 * kSecond);
  const auto b = coverage.count(
      "GPU-1", {slice(0, 4, Account::kForeign), slice(4, 8, Account::kUseful), slice(8, 10, Account::kInput)}, 0, "b");
  EXPECT_EQ(time(b, Account::kUseful), 3) << "no more than the other one saw of others";
  EXPECT_EQ(time(b, Account::kInput), 0);
  EXPECT_EQ(b.elsewhere, 3 * kSecond);
}

TEST(Coverage, OutsideOfWhatWasAskedForNothingCounts) {
  Coverage coverage(102 * kSecond, 106 * kSecond);
  EXPECT_EQ(coverage.left("GPU-1", 100 * kSecond, 110 * kSecond), 4 * kSecond);
  const auto a =
      coverage.count("GPU-1", {slice(0, 3, Account::kUseful), slice(3, 10, Account::kInput)}, 100 * kSecond, "a");
  EXPECT_EQ(time(a, Account::kUseful), 1);
  EXPECT_EQ(time(a, Account::kInput), 3);
  EXPECT_EQ(a.outside, 6 * kSecond);
  EXPECT_EQ(a.elsewhere, 0);
  const auto late = coverage.count("GPU-1", {slice(0, 3, Account::kUseful)}, 200 * kSecond, "b");
  EXPECT_EQ(sum_of(late.accounts), 0);
  EXPECT_EQ(late.outside, 3 * kSecond);
}

TEST(Coverage, NoGpuCountsLongerThanTimeGoesOnAndEveryFilesTimeIsSomewhere) {
  constexpr std::array kOf{Account::kUseful, Account::kForeign, Account::kInput, Account::kNoTask, Account::kDiscarded};
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto up_to = [&](int most) { return static_cast<Nanos>(std::uniform_int_distribution(0, most)(random)); };
    Coverage coverage(seed % 3 == 0 ? std::optional(30 * kSecond) : std::nullopt, std::nullopt);
    Nanos counted = 0;
    for (int file = 0; file < 8; ++file) {
      std::vector<Slice> slices;
      Nanos at = up_to(50), length = 0;
      const Nanos begin = at;
      for (Nanos i = up_to(5); i >= 0; --i) {
        const Nanos next = at + 1 + up_to(20);
        slices.push_back(slice(at, next, kOf[static_cast<std::size_t>(up_to(4))]));
        at = next;
      }
      length = (at - begin) * kSecond;
      const auto one = coverage.count("GPU-1", slices, 0, std::to_string(file));
      Nanos with = 0;
      for (const auto& [path, ns] : one.with) with += ns;
      EXPECT_EQ(with, one.elsewhere);
      EXPECT_EQ(sum_of(one.accounts) + one.foreign + one.elsewhere + one.outside, length);
      counted += sum_of(one.accounts);
    }
    EXPECT_LE(counted, 200 * kSecond);
    EXPECT_LE(counted, 200 * kSecond - coverage.left("GPU-1", 0, 200 * kSecond));
  }
}

}  // namespace
}  // namespace headroom::fleet
