// SPDX-License-Identifier: Apache-2.0
#include "base/median.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

TEST(Median, IsAValueThatOccurs) {
  EXPECT_EQ(median<int>({7}), 7);
  EXPECT_EQ(median<int>({9, 1, 5}), 5);
  EXPECT_EQ(median<int>({9, 1, 5, 6}), 6);  // the upper of the two in the middle
  EXPECT_EQ(median<double>({0.5, 0.5, 100}), 0.5);
}

}  // namespace
}  // namespace headroom
