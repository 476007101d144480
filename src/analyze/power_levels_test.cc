// SPDX-License-Identifier: Apache-2.0
#include "analyze/power_levels.h"

#include <gtest/gtest.h>

#include <limits>

namespace headroom {
namespace {

constexpr Window kAll{std::numeric_limits<Nanos>::min(), std::numeric_limits<Nanos>::max()};

// A reading a second of so many watts.
template <class Watts>
Track track(int seconds, const Watts& watts) {
  Track track;
  Column power{Metric::kPower, {}, {}};
  for (int i = 0; i < seconds; ++i) {
    track.at.push_back((i + 1) * kSecond);
    power.values.push_back(from_unit(Metric::kPower, watts(i)));
  }
  track.columns.push_back(std::move(power));
  return track;
}

TEST(PowerLevels, OneStretchOfWorkHasItsBeginAndEnd) {
  const auto found = power_levels(track(100, [](int i) { return i >= 20 && i < 80 ? 300 + i % 5 : 30 + i % 2; }), kAll);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->low_watts, 30.5, 0.1);
  EXPECT_NEAR(found->high_watts, 302, 0.1);
  EXPECT_DOUBLE_EQ(found->high_share, 0.6);
  EXPECT_EQ(found->high, (std::vector<Window>{{20 * kSecond, 80 * kSecond}}));
  EXPECT_FALSE(found->period);
}

TEST(PowerLevels, ARhythmHasItsPeriod) {
  const auto found = power_levels(track(300, [](int i) { return i % 30 < 18 ? 142.0 : 38.0; }), kAll);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->high.size(), 10U);
  EXPECT_EQ(found->period, 30 * kSecond);
  EXPECT_NEAR(found->high_share, 0.6, 0.001);
}

TEST(PowerLevels, OnePowerOrManyAreNoTwoLevels) {
  EXPECT_FALSE(power_levels(track(100, [](int i) { return 300 + i % 7; }), kAll)) << "one";
  EXPECT_FALSE(power_levels(track(100, [](int i) { return 50 + 3 * i; }), kAll)) << "a slope";
  EXPECT_FALSE(power_levels(track(100, [](int i) { return i == 50 ? 300 : 30; }), kAll)) << "one reading";
  EXPECT_FALSE(power_levels(track(100, [](int i) { return i < 50 ? 8 : 14; }), kAll)) << "a few watts";
  EXPECT_FALSE(power_levels(track(10, [](int i) { return i < 5 ? 30 : 300; }), kAll)) << "too few readings";
}

}  // namespace
}  // namespace headroom
