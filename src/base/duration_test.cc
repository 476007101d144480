// SPDX-License-Identifier: Apache-2.0
#include "base/duration.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

TEST(Duration, ANumberAndAUnit) {
  EXPECT_EQ(*parse_duration("100ms"), 100 * kMillisecond);
  EXPECT_EQ(*parse_duration("70h"), 70 * 3600 * kSecond);
  EXPECT_EQ(*parse_duration("2.5 m"), 150 * kSecond);
  EXPECT_EQ(*parse_duration("0"), 0);
}

TEST(Duration, ANumberWithoutItsUnitIsRefused) {
  for (const char* text : {"30", "29.8", " 5 ", "1e3"}) {
    const auto duration = parse_duration(text);
    ASSERT_FALSE(duration) << text;
    EXPECT_NE(duration.error().what.find("has no unit"), std::string::npos);
  }
  EXPECT_EQ(parse_duration("30").error().hint, "write 30s or 30m or 30h");
}

TEST(Duration, NonsenseIsNothing) {
  for (const char* text : {"", "h", "-1s", "1e400", "inf", "nan", "12 parsecs", "1s2"})
    EXPECT_FALSE(parse_duration(text)) << text;
}

}  // namespace
}  // namespace headroom
