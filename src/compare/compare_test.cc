// SPDX-License-Identifier: Apache-2.0
#include "compare/compare.h"

#include <gtest/gtest.h>

namespace headroom::compare {
namespace {
TEST(Compare, NothingIsNotComparable) {
  const Comparison nothing = compare({}, {});
  EXPECT_FALSE(nothing.comparable());
  EXPECT_EQ(nothing.valid_command, "headroom ab -- CMD_A --- CMD_B");
}
}  // namespace
}  // namespace headroom::compare
