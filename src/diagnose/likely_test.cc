// SPDX-License-Identifier: Apache-2.0
// The cause of a set that is the likeliest by far is named, and what else it may be stays beside it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analyze/testing.h"
#include "diagnose/explain.h"
#include "diagnose/testing.h"

namespace headroom {
namespace {

using testing::cell;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::RecordingBuilder;
using ::testing::SizeIs;

// A step a second for a minute: kernels, and then code of the job that takes 0.3 s.
struct Step {
  double cpu = 0.3, delay = 0;  // of a core
  Frames code{"train (/u/train.py:1)", "mix (/u/train.py:9)"};
  double kernels = 0.7;  // seconds of each
};
Finding first_of(const Step& step) {
  RecordingBuilder builder(60);
  builder.gpu(0, [&](double) { return step.kernels; });
  builder.process({7,
                   1,
                   0,
                   60,
                   step.cpu,
                   true,
                   {cell(Metric::kRunDelay, static_cast<std::int64_t>(step.delay * 1e9)), cell(Metric::kWriteBytes, 0),
                    cell(Metric::kReadBytes, 0)}});
  builder.context(7, 0, 0, 60);
  for (int i = 0; i < 60; ++i)
    builder.stacks(7, i, i + step.kernels, kKernels).stacks(7, i + step.kernels, i + 1, step.code);
  return explain(builder.build()).findings.front();
}

TEST(Likely, WhatFourToOneSpeaksForIsNamedAndTheOthersStay) {
  const Finding code = first_of({});
  EXPECT_EQ(code.cause, Cause::kHostGraphBuilding) << code.title;
  EXPECT_THAT(code.candidates, IsEmpty());
  EXPECT_THAT(code.less_likely, Contains(Cause::kInputInMainProcess));
  ASSERT_THAT(code.speaks_for, SizeIs(1 + code.less_likely.size()));
  EXPECT_THAT(code.speaks_for[0], HasSubstr("its stacks are in its own code"));
  EXPECT_TRUE(names(code, Cause::kInputInMainProcess)) << "a change for it is considered, too";
  EXPECT_FALSE(is_settled(code));
}

TEST(Likely, CodeWhoseNameSpeaksOfNoDataIsNotSaidToLoadIt) {
  const auto named = [](const char* function) { return first_of({.code = {"train (/u/train.py:1)", function}}); };
  EXPECT_FALSE(names(named("Average.update (/u/train.py:9)"), Cause::kInputInMainProcess));
  EXPECT_TRUE(names(named("crop_images (/u/train.py:9)"), Cause::kInputInMainProcess));
  EXPECT_TRUE(names(named("<module> (/u/train.py:9)"), Cause::kInputInMainProcess)) << "it may be anything";
}

TEST(Likely, AWaitForACoreIsARivalWhereItIsLong) {
  const Finding little = first_of({.cpu = 0.3, .delay = 0.08}), much = first_of({.cpu = 0.2, .delay = 0.12});
  EXPECT_EQ(little.cause, Cause::kHostGraphBuilding) << little.title;
  EXPECT_THAT(little.less_likely, Contains(Cause::kCpuOversubscribed));
  EXPECT_EQ(much.cause, std::nullopt) << much.title;
  EXPECT_THAT(much.candidates, Contains(Cause::kCpuOversubscribed));
}

// Each step takes 1.9 s of code and has 0.1 s of kernels: that is no pause between trainings.
TEST(Likely, LongStepsWithHardlyAKernelAreNoPauses) {
  RecordingBuilder builder(60, 0.2);
  builder.gpu(0, [](double t) { return std::fmod(t - 0.001, 2) < 0.2 ? 0.5 : 0.0; });
  builder.process(7, 1, 0, 60, 0.95).context(7, 0, 0, 60);
  builder.stacks(7, 0, 60, {"train (/u/train.py:1)", "mix (/u/train.py:9)"});
  const Finding first = explain(builder.build()).findings.front();
  EXPECT_THAT(first.title, HasSubstr("The GPU waits for code of the training process: mix"));
  EXPECT_FALSE(names(first, Cause::kValidation));
}

// Until the 20th second it waits for a lock, then a compiler runs, then kernels do.
Explanation waits_and_compiles() {
  RecordingBuilder builder(100);
  builder.sleeping_in(WaitChannel::kFutex);
  builder.gpu(0, [](double t) { return t <= 40 ? 0.0 : 0.99; });
  builder.process(7, 1, 0, 100, 0.0).context(7, 0, 40, 100);
  builder.stacks(7, 0, 20, {"train (/u/train.py:1)", "wait_for_lock (/u/train.py:9)"});
  builder.stacks(7, 20, 40, {"train (/u/train.py:1)", "compile_fx (/x/site-packages/torch/_inductor/compile_fx.py:1)"});
  return explain(builder.build());
}

TEST(Likely, WhoSleepsBeforeItStartsLoadsNothingAndCompilesNothing) {
  const Explanation e = waits_and_compiles();
  const auto waits =
      std::find_if(e.findings.begin(), e.findings.end(), [](const Finding& finding) { return finding.asleep; });
  ASSERT_NE(waits, e.findings.end()) << everything(e);
  EXPECT_THAT(waits->title, HasSubstr("before its first kernel the process sleeps or waits"));
  EXPECT_THAT(waits->advice, HasSubstr("end that wait"));
  const Finding* compiles = find_single(e, Cause::kCompileWarmup);
  ASSERT_TRUE(compiles && compiles->gain) << everything(e);
  EXPECT_THAT(compiles->bound, Not(HasSubstr("of other time that may have the same cause")));
}

}  // namespace
}  // namespace headroom
