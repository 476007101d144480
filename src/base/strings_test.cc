// SPDX-License-Identifier: Apache-2.0
#include "base/strings.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

TEST(Strings, SplitKeepsEmptyFields) {
  EXPECT_EQ(split("a,,b,", ','), (std::vector<std::string_view>{"a", "", "b", ""}));
}
TEST(Strings, TrimTakesBlanksOffBothEnds) { EXPECT_EQ(trim(" \t590.0 W\r\n"), "590.0 W"); }

TEST(Strings, NumbersMustBeWhole) {
  EXPECT_EQ(parse_number<int>("42"), 42);
  EXPECT_FALSE(parse_number<int>("42x"));
  EXPECT_FALSE(parse_number<int>(""));
  EXPECT_DOUBLE_EQ(*parse_number<double>("20.5"), 20.5);
}

TEST(Strings, ClosestSuggestsSlipsAndNothingFarAway) {
  EXPECT_EQ(closest("retrys", {"retries", "timeout"}), "retries");
  EXPECT_EQ(closest("rcord", {"run", "record", "why"}), "record");
  EXPECT_EQ(closest("banana", {"run", "record", "why"}), "");
}

TEST(Strings, ShellQuoteSurvivesQuotesAndBlanks) {
  EXPECT_EQ(shell_quote("plain-1.5"), "plain-1.5");
  EXPECT_EQ(shell_quote("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quote(""), "''");
}

}  // namespace
}  // namespace headroom
