// SPDX-License-Identifier: Apache-2.0
#include "output/log_pattern.h"

#include <gtest/gtest.h>

namespace headroom::output {
namespace {

TEST(LogPatterns, OneGroupIsTheValue) {
  EXPECT_EQ(*parse_log_option(LogPattern::Kind::kMetric, "loss=loss: ([0-9.]+)"),
            (LogPattern{LogPattern::Kind::kMetric, "loss", "loss: ([0-9.]+)"}));
  const auto what = [](const char* text) { return parse_log_option(LogPattern::Kind::kMetric, text).error().what; };
  EXPECT_EQ(what("loss"), "'loss' has no '='");
  EXPECT_EQ(what("loss=abc"), "'abc' has 0 groups");
  EXPECT_EQ(what("=(a)"), "a pattern without a name");
  EXPECT_TRUE(what("loss=(").starts_with("'(' is no regular expression: "));
}

TEST(LogPatterns, WhatTakesMoreThanLinearTimeIsRefusedWithTheReason) {
  const auto refused = parse_log_option(LogPattern::Kind::kMetric, "x=(a)\\1");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().hint.find("back-references"), std::string::npos);
}

// Where a backtracking engine doubles its time with every character, this one reads each once: 64 KiB of it end.
TEST(Matcher, NoLineHoldsItUp) {
  const Matcher nested({LogPattern::Kind::kMetric, "x", "(a+)+$"});
  const Matcher loss({LogPattern::Kind::kMetric, "x", ".*loss.*=.*([0-9]+).*s"});
  EXPECT_FALSE(nested.find(std::string(65536, 'a') + "b"));
  std::string line;
  while (line.size() < 65536) line += "loss= ";
  EXPECT_FALSE(loss.find(line));
}

TEST(Matcher, FindsTheGroupOfTheFirstMatch) {
  const Matcher step({LogPattern::Kind::kStep, "", "step (\\d+)"});
  EXPECT_EQ(step.find("at step 12 of step 30"), "12");
  EXPECT_EQ(step.find("no such thing"), std::nullopt);
  EXPECT_EQ(step.find("\xff\xfe step 7"), "7");  // a log need not be UTF-8
}

}  // namespace
}  // namespace headroom::output
