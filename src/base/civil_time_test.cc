// SPDX-License-Identifier: Apache-2.0
#include "base/civil_time.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

TEST(ParseIsoTime, ReadsWhatPythonAndDatabasesWrite) {
  constexpr Nanos kAt = 1'795'370'104 * kSecond;
  EXPECT_EQ(parse_iso_time("2026-11-22 17:55:04")->at, kAt);
  EXPECT_EQ(parse_iso_time("2026-11-22 17:55:04.000001")->at, kAt + kMicrosecond);
  EXPECT_FALSE(parse_iso_time("2026-11-22T17:55:04.5")->zone);
  EXPECT_EQ(parse_iso_time("2026-11-22T17:55:04.500000+00:00")->at, kAt + kSecond / 2);
  EXPECT_EQ(parse_iso_time("2026-11-22T17:55:04-01:30")->at, kAt + 5400 * kSecond);
  EXPECT_TRUE(parse_iso_time("2026-11-22T17:55:04Z")->zone);
}

TEST(ParseIsoTime, WhatIsNoneIsNothing) {
  for (const char* text :
       {"", "2026-11-22", "2026-11-22 17:55", "2026-02-30 17:55:04", "2026-11-22 25:55:04", "2026/11/22 17:55:04",
        "2026-11-22 17:55:04 UTC", "2026-11-22 17:55:04.", "9999-11-22 17:55:04"})
    EXPECT_FALSE(parse_iso_time(text)) << text;
}

}  // namespace
}  // namespace headroom
