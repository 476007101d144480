// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <gtest/gtest.h>

namespace headroom {

TEST(ParseBytes, UnitsArePowersOf1024UnlessTheySayOtherwise) {
  EXPECT_EQ(parse_bytes("3GiB"), std::int64_t{3} << 30);
  EXPECT_EQ(parse_bytes("512m"), std::int64_t{512} << 20);
  EXPECT_EQ(parse_bytes(" 1.5 KiB "), 1536);
  EXPECT_EQ(parse_bytes("2GB"), 2'000'000'000);
  EXPECT_EQ(parse_bytes("0B"), 0);
}

TEST(ParseBytes, WhatIsNoSizeIsRefused) {
  for (const char* text : {"", "3", "GiB", "-1GiB", "3 gigs", "1e3MiB", "1.2.3G", "nan", "99999999999TiB"})
    EXPECT_FALSE(parse_bytes(text)) << text;
  EXPECT_EQ(parse_bytes("3").error().what, "'3' is no size");
  EXPECT_EQ(parse_bytes("3").error().hint, "write a number and a unit: 3GiB, 512MiB");
}

}  // namespace headroom
