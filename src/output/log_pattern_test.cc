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

StepCounter counter(const char* pattern) { return StepCounter(Matcher({LogPattern::Kind::kStep, "", pattern})); }

TEST(StepCounter, TheLastNumberCounts) {
  StepCounter steps = counter("tree (\\d+)/");
  EXPECT_FALSE(steps.done());
  steps.take("loading\ntree 10/30 loss=0.5\ntree 20/30 loss=0.4\n");
  EXPECT_EQ(steps.done(), 20);
  steps.take("tree 30/30\nauc=0.9\n");
  EXPECT_EQ(steps.done(), 30);
}

TEST(StepCounter, ANewEpochGoesOnCounting) {
  StepCounter steps = counter("step (\\d+)");
  steps.take("step 50\nstep 100\nstep 1\nstep 40\n");
  EXPECT_EQ(steps.done(), 140);
}

TEST(StepCounter, ProgressBarsReturnInsteadOfEndingLines) {
  StepCounter steps = counter("(\\d+)/500");
  steps.take("  1%| | 5/500\r  2%| | 10/500\r");
  EXPECT_EQ(steps.done(), 10);
}

TEST(StepCounter, WhatIsNoNumberCountsOneByOne) {
  StepCounter steps = counter("(done) with a batch");
  steps.take("done with a batch\nother\ndone with a batch\n");
  EXPECT_EQ(steps.done(), 2);
}

TEST(StepCounter, WhatNoTaskCanHaveDoneIsNoNumber) {
  StepCounter steps = counter("step (\\S+)");
  steps.take("step 7\nstep nan\nstep inf\nstep 1e300\n");
  EXPECT_EQ(steps.done(), 10);
  steps.take("step 20\n");
  EXPECT_EQ(steps.done(), 20);
}

}  // namespace

}  // namespace headroom::output
