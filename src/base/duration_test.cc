// SPDX-License-Identifier: Apache-2.0
#include "base/duration.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

TEST(Duration, UnitsAndBareSeconds) {
  EXPECT_EQ(*parse_duration("100ms"), 100 * kMillisecond);
  EXPECT_EQ(*parse_duration("70h"), 70 * 3600 * kSecond);
  EXPECT_EQ(*parse_duration("2.5 m"), 150 * kSecond);
  EXPECT_EQ(*parse_duration("29.8"), 29'800 * kMillisecond);
}

TEST(Duration, NonsenseIsNothing) {
  for (const char* text : {"", "h", "-1s", "1e400", "inf", "nan", "12 parsecs", "1s2"})
    EXPECT_FALSE(parse_duration(text)) << text;
}

}  // namespace
}  // namespace headroom
