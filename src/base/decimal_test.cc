// SPDX-License-Identifier: Apache-2.0
#include "base/decimal.h"

#include <gtest/gtest.h>

#include <limits>

namespace headroom {
namespace {

TEST(Decimal, IsExactAndHasNoNeedlessZeros) {
  EXPECT_EQ(decimal(590'000, 3), "590");
  EXPECT_EQ(decimal(1'140, 4), "0.114");
  EXPECT_EQ(decimal(0, 9), "0");
  EXPECT_EQ(decimal(7, 0), "7");
  EXPECT_EQ(decimal(1, 9), "0.000000001");
}

TEST(Decimal, OfWhatIsNegative) {
  EXPECT_EQ(decimal(-5, 3), "-0.005");
  EXPECT_EQ(decimal(std::numeric_limits<std::int64_t>::min(), 9), "-9223372036.854775808");
}

}  // namespace
}  // namespace headroom
