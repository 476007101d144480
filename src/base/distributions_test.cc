// SPDX-License-Identifier: Apache-2.0
#include "base/distributions.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

TEST(StudentT, AsInTheTables) {
  EXPECT_NEAR(student_t(1, 0.05), 12.706, 0.001);
  EXPECT_NEAR(student_t(2, 0.05), 4.303, 0.001);
  EXPECT_NEAR(student_t(4, 0.05), 2.776, 0.001);
  EXPECT_NEAR(student_t(10, 0.01), 3.169, 0.001);
  EXPECT_NEAR(student_t(30, 0.05), 2.042, 0.001);
  EXPECT_NEAR(student_t(1'000'000, 0.05), 1.960, 0.001);
}

// Of 10 with 4 marked ones, 3 drawn: 120 draws, of which 4 hold three marked ones and 36 two.
TEST(DrawnByChance, CountsTheDraws) {
  EXPECT_NEAR(drawn_by_chance(3, 3, 4, 10), 4.0 / 120, 1e-12);
  EXPECT_NEAR(drawn_by_chance(2, 3, 4, 10), 40.0 / 120, 1e-12);
  EXPECT_DOUBLE_EQ(drawn_by_chance(0, 3, 4, 10), 1);
  EXPECT_DOUBLE_EQ(drawn_by_chance(4, 3, 4, 10), 0);
  EXPECT_DOUBLE_EQ(drawn_by_chance(1, 8, 4, 10), 1);  // two of eight are marked at the least
  EXPECT_DOUBLE_EQ(drawn_by_chance(10, 10, 10, 10), 1);
}

TEST(DrawnByChance, OfManyIsNoLessPrecise) {
  const double rare = drawn_by_chance(200, 200, 300, 2000);
  EXPECT_GT(rare, 0);
  EXPECT_LT(rare, 1e-100);
}

}  // namespace
}  // namespace headroom
