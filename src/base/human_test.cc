// SPDX-License-Identifier: Apache-2.0
#include "base/human.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

TEST(Human, TheLongestDurationsHaveWords) {
  EXPECT_EQ(human_duration(INT64_MIN), human_duration(-INT64_MAX));
  EXPECT_EQ(human_duration(INT64_MIN), "-" + human_duration(INT64_MAX));
}

TEST(Human, DurationsChooseTheirUnit) {
  EXPECT_EQ(human_duration(0), "0 s");
  EXPECT_EQ(human_duration(340 * kMillisecond), "340 ms");
  EXPECT_EQ(human_duration(5'300 * kMillisecond), "5.3 s");
  EXPECT_EQ(human_duration(59'960 * kMillisecond), "1:00");
  EXPECT_EQ(human_duration(422 * kSecond), "7:02");
  EXPECT_EQ(human_duration(3723 * kSecond), "1:02:03");
  EXPECT_EQ(human_duration(63'000 * kSecond), "17.5 h");
  EXPECT_EQ(human_duration(863'999 * kSecond), "240.0 h");
  EXPECT_EQ(human_duration(864'000 * kSecond), "10 days");
  EXPECT_EQ(human_duration(101'865'240 * kSecond), "1179 days");
}

TEST(Human, BytesKeepThreeDigits) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(std::int64_t{167} << 20), "167 MiB");
  EXPECT_EQ(human_bytes(std::int64_t{6141} << 20), "6141 MiB");
  EXPECT_EQ(human_bytes(std::int64_t{48} << 30), "48.0 GiB");
}

TEST(Human, PercentsKeepWhatMatters) {
  EXPECT_EQ(human_percent(0.612), "61 %");
  EXPECT_EQ(human_percent(0.027), "2.7 %");
  EXPECT_EQ(human_percent(0.0004), "0.04 %");
  EXPECT_EQ(human_percent(0), "0 %");
  EXPECT_EQ(human_percent(0.9953), "99.5 %") << "not all of it";
  EXPECT_EQ(human_percent(0.9997), "100 %");
}

TEST(Human, FiguresHaveNoExponents) {
  EXPECT_EQ(human_figure(0.1234, 2), "0.12");
  EXPECT_EQ(human_figure(1.26, 2), "1.3");
  EXPECT_EQ(human_figure(99.4, 2), "99");
  EXPECT_EQ(human_figure(99.6, 2), "100");
  EXPECT_EQ(human_figure(127.5, 2), "128");
  EXPECT_EQ(human_figure(999.7, 3), "1,000");
  EXPECT_EQ(human_figure(-1234.4, 3), "-1,234");
  EXPECT_EQ(human_figure(0, 3), "0");
}

TEST(Human, OneIsOneAndTheRestAreMany) {
  EXPECT_EQ(count_of(0, "task"), "0 tasks");
  EXPECT_EQ(count_of(1, "task"), "1 task");
  EXPECT_EQ(count_of(std::size_t{1'200}, "task"), "1,200 tasks");
  EXPECT_EQ(count_of(1, "process", "processes"), "1 process");
  EXPECT_EQ(count_of(2U, "process", "processes"), "2 processes");
}

TEST(Human, CountsAndFactorsAndClock) {
  EXPECT_EQ(human_count(691'200), "691,200");
  EXPECT_EQ(human_count(-1'000), "-1,000");
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_factor(1.3208), "1.32x");
  EXPECT_EQ(human_factor(8.77), "8.8x");
  EXPECT_EQ(clock_time((21 * 3600 + 16 * 60 + 20) * kSecond), "21:16:20");
}

}  // namespace
}  // namespace headroom
