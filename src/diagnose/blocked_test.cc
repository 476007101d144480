// SPDX-License-Identifier: Apache-2.0
// What a job waits for while it seems to run code of its own, and what is no worker of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analyze/testing.h"
#include "diagnose/explain.h"

namespace headroom {
namespace {

using testing::cell;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RecordingBuilder;

// Kernels for 0.7 of each second, in the rest the process is in `frames`.
Explanation between_kernels(double cpu, double delay, const std::vector<std::string>& frames) {
  RecordingBuilder builder(60);
  builder.lines().gpu(0, [](double) { return 0.7; }).sleeping_in(WaitChannel::kPipe);
  builder.process({7, 1, 0, 60, cpu, true, {cell(Metric::kRunDelay, static_cast<std::int64_t>(delay * 1e9))}});
  builder.context(7, 0, 0, 60);
  for (int i = 0; i < 60; ++i) {
    builder.stacks(7, i, i + 0.7, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
    builder.stacks(7, i + 0.7, i + 1, frames);
  }
  return explain(builder.build());
}

TEST(Blocked, CodeThatRanForLessThanHalfOfItsTimeSleptForTheRest) {
  const std::vector<std::string> report{"train (/u/train.py:1)", "report (/u/train.py:9)", "write() (/u/train.py:9)"};
  const Explanation sleeps = between_kernels(0.1, 0, report);
  EXPECT_THAT(sleeps.findings.front().title, HasSubstr("while the training process mostly sleeps or waits itself"));
  EXPECT_TRUE(sleeps.findings.front().mostly_waits);
  EXPECT_FALSE(sleeps.findings.front().asleep) << "it ran for a third: in a worker, too, that needs a core";
  EXPECT_THAT(sleeps.headline, HasSubstr("while the job slept or waited"));
  EXPECT_THAT(sleeps.findings.front().advice, Not(HasSubstr("make that code cheaper")));
  const Explanation runs = between_kernels(0.2, 0, report);
  EXPECT_THAT(runs.findings.front().title, HasSubstr("for code of the training process"));
  EXPECT_FALSE(runs.findings.front().mostly_waits);
}

TEST(Blocked, WhoWritesToAFullPipeWaitsForItsReader) {
  const std::vector<std::string> report{"train (/u/train.py:1)", "report (/u/train.py:9)", "write() (/u/train.py:9)"};
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.3; }).sleeping_in(WaitChannel::kPipe);
  builder.process(7, 1, 0, 60, 0.1).process(8, 1, 0, 60, 0.01).context(7, 0, 0, 60);
  builder.waits_for(7, {WaitKind::kFullPipe, "pager", {8}});
  for (int i = 0; i < 60; ++i) {
    builder.stacks(7, i, i + 0.3, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
    builder.stacks(7, i + 0.3, i + 1, report);
  }
  const Finding first = explain(builder.build()).findings.front();
  EXPECT_EQ(first.cause, Cause::kLoggingUpload) << first.title;
  EXPECT_THAT(first.title, HasSubstr("writes to a pipe that is full, which process 8"));
  EXPECT_THAT(first.advice, HasSubstr("let its reader take it faster"));
}

TEST(Blocked, ALockOnAFileIsAWaitAndNoCode) {
  const Explanation e = between_kernels(
      0.02, 0, {"train (/u/train.py:1)", "open_shard (/u/train.py:17)", "fcntl.flock() (/u/train.py:17)"});
  EXPECT_THAT(e.headline, Not(HasSubstr("for code of the job")));
  EXPECT_THAT(e.findings.front().title, Not(HasSubstr("code of the training process")));
  EXPECT_THAT(e.findings.front().candidates, Not(Contains(Cause::kLaunchBound)));
}

TEST(Blocked, WhatOnlyWaitsIsNotSaidToHaveRun) {
  const std::vector<std::string> lock{"train (/u/train.py:1)", "open_shard (/u/train.py:17)",
                                      "fcntl.flock() (/u/train.py:17)"};
  const Finding first = between_kernels(0.3, 0, lock).findings.front();
  ASSERT_GT(first.candidates.size(), 1U) << first.title;
  EXPECT_THAT(first.speaks_for, Not(Contains(HasSubstr("main thread used")))) << "it did so beside its kernels";
}

TEST(Blocked, AWaitForACoreIsNoShareOfATimeThatIsAPartOfTheReadings) {
  const Finding part = between_kernels(0.05, 0.24, {"train (/u/train.py:1)", "add (/u/train.py:9)"}).findings.front();
  EXPECT_THAT(part.title, HasSubstr("waits for a CPU core"));
  EXPECT_THAT(part.title, Not(HasSubstr("% of this time")));
  EXPECT_THAT(part.evidence, Contains(HasSubstr("over whole readings, the main thread")));
  EXPECT_THAT(part.would_overturn, HasSubstr("on cores that nothing else uses"));
}

TEST(Blocked, AStartThatWaitsForACoreSaysSo) {
  const auto start = [](double delay) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double t) { return t <= 20 ? 0.0 : 0.99; });
    builder.process({7, 1, 0, 60, 0.3, true, {cell(Metric::kRunDelay, static_cast<std::int64_t>(delay * 1e9))}});
    return explain(builder.context(7, 0, 1, 60).build()).findings.front();
  };
  EXPECT_THAT(start(0.5).evidence, Contains(HasSubstr("had no core for 50 % of the time")));
  EXPECT_THAT(start(0.5).advice, HasSubstr("on cores that nothing else uses"));
  EXPECT_THAT(start(0.1).evidence, Not(Contains(HasSubstr("had no core"))));
}

TEST(Blocked, AnEndThatWaitsForACoreSaysSo) {
  const auto end = [](double delay) {
    RecordingBuilder builder(100);
    builder.gpu(0, [](double t) { return t <= 60 ? 0.99 : 0.0; });
    builder.process({7, 1, 0, 100, 0.3, true, {cell(Metric::kRunDelay, static_cast<std::int64_t>(delay * 1e9))}});
    return explain(builder.context(7, 0, 0, 100).build()).findings.front();
  };
  EXPECT_THAT(end(0.6).title, HasSubstr("held after its last kernel"));
  EXPECT_THAT(end(0.6).evidence, Contains(HasSubstr("had no core for 60 % of the time")));
  EXPECT_THAT(end(0.1).evidence, Not(Contains(HasSubstr("had no core"))));
}

// Python's resource tracker is a child like the workers, and does nothing.
TEST(Blocked, WhatPythonStartsBesideWorkersIsNone) {
  RecordingBuilder builder(60);
  builder.machine(4, 1.5).gpu(0, [](double) { return 0.4; }).sleeping_in(WaitChannel::kPipe);
  builder.process(7, 1, 0, 60, 0.02).context(7, 0, 0, 60);
  builder.process(8, 7, 0, 60, 0.001).process(9, 7, 0, 60, 0.9);
  Recording recording = builder.build();
  for (Source& source : recording.sources)
    if (source.kind == SourceKind::kProcess && process_of(source).pid == 8)
      source.attrs["cmdline"] = "python3 -c from multiprocessing.resource_tracker import main;main(5)";
  const Explanation e = explain(recording);
  EXPECT_EQ(e.host.value().helpers, 1);
  EXPECT_THAT(e.findings.front().evidence, Contains(HasSubstr("what it started (1 process at once)")));
}

TEST(Blocked, TheLineOfCodeThatMostlyLaunchesIsThatOfItsLaunches) {
  const std::string optimizer = "Adam.step (/usr/lib/python3/dist-packages/torch/optim/adam.py:1)";
  RecordingBuilder builder(60);
  builder.lines().gpu(0, [](double) { return 0.4; }).process(7, 1, 0, 60, 0.9).context(7, 0, 0, 60);
  for (int i = 0; i < 60; ++i) {
    builder.stacks(7, i, i + 0.9, {"train (/u/train.py:1)", "update (/u/train.py:28)", optimizer});
    builder.stacks(7, i + 0.9, i + 1, {"train (/u/train.py:1)", "update (/u/train.py:31)"});
  }
  const Finding first = explain(builder.build()).findings.front();
  EXPECT_THAT(first.evidence.front(), HasSubstr("at line 28")) << first.evidence.front();
}

}  // namespace
}  // namespace headroom
