// SPDX-License-Identifier: Apache-2.0
#include "analyze/beat.h"

#include <gmock/gmock.h>

#include <random>
#include <vector>

namespace headroom {
namespace {

// Readings a second apart.
std::optional<Beat> beat_of(const std::vector<int>& percent) {
  Track track;
  Column column;
  column.metric = Metric::kGpuUtil;
  for (std::size_t i = 0; i < percent.size(); ++i) {
    track.at.push_back(static_cast<Nanos>(i + 1) * kSecond);
    column.values.push_back(from_unit(Metric::kGpuUtil, percent[i] / 100.0));
  }
  track.columns.push_back(column);
  return find_beat(track, {0, static_cast<Nanos>(percent.size()) * kSecond});
}

std::vector<int> rhythm(std::size_t rounds, std::size_t high, std::size_t low) {
  std::vector<int> readings;
  for (std::size_t i = 0; i < rounds; ++i) {
    readings.insert(readings.end(), high, 95);
    readings.insert(readings.end(), low, 1);
  }
  return readings;
}

TEST(Beat, LowReadingsInOneRhythm) {
  const auto beat = beat_of(rhythm(20, 3, 2));
  ASSERT_TRUE(beat);
  EXPECT_EQ(beat->readings, 5);
  EXPECT_EQ(beat->low, 2);
  EXPECT_EQ(beat->rounds, 19U);  // of the last nothing tells where it ended
  EXPECT_EQ(beat->interval, kSecond);
}

TEST(Beat, FewRoundsOrUnevenOnesAreNone) {
  EXPECT_FALSE(beat_of(rhythm(5, 3, 2)));
  EXPECT_FALSE(beat_of(std::vector<int>(100, 95)));
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {  // a low reading now and then
    std::vector<int> readings;
    for (int j = 0; j < 200; ++j) readings.push_back(random() % 4 == 0 ? 2 : 95);
    EXPECT_FALSE(beat_of(readings)) << i;
  }
}

TEST(Beat, LevelsThatHardlyDifferAreNone) {
  std::vector<int> readings;
  for (int i = 0; i < 100; ++i) readings.push_back(i % 5 < 2 ? 40 : 95);
  EXPECT_FALSE(beat_of(readings));
}

}  // namespace
}  // namespace headroom
