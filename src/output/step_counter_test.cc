// SPDX-License-Identifier: Apache-2.0
#include "output/step_counter.h"

#include <gtest/gtest.h>

namespace headroom::output {
namespace {

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
