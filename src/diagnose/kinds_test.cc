// SPDX-License-Identifier: Apache-2.0
// What a frame, a rhythm or a count tells of the kind of idle time it is.
#include <gmock/gmock.h>

#include <cmath>

#include "diagnose/explain.h"
#include "diagnose/testing.h"

namespace headroom {
namespace {

using testing::cell;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RecordingBuilder;

const Frames kAwaits{"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"};

// Each second: kernels for 0.7 of it, while the main thread runs all the time, for a part of it at `rarely`.
Finding running(const Frames& mostly, const Frames& rarely) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.7; }).process(7, 1, 0, 60, 0.98).context(7, 0, 0, 60);
  for (int i = 0; i < 60; ++i) builder.stacks(7, i, i + 0.8, mostly).stacks(7, i + 0.8, i + 1, rarely);
  return explain(builder.build()).findings.front();
}

TEST(Kinds, WhoIsSeenInLaunchesAgainAndAgainLaunchesManyShortKernels) {
  const Frames dumps{"train (/u/train.py:1)", "dumps (/usr/lib/python3.11/json/__init__.py:1)"};
  const Finding launches = running(dumps, {"train (/u/train.py:1)", "Device.launch (/x/headroom_sim.py:1)"});
  EXPECT_EQ(launches.cause, Cause::kLaunchBound);
  EXPECT_THAT(launches.title, HasSubstr("launches its kernels, one by one"));
  EXPECT_THAT(launches.evidence, Contains(HasSubstr("20 % of the looks at its stacks were in calls that launch")));
  EXPECT_NE(running(dumps, {"train (/u/train.py:1)", "log (/u/train.py:9)"}).cause, Cause::kLaunchBound);
}

TEST(Kinds, GarbageCollectionIsTheCodeItselfAndNoLoading) {
  const Finding finding =
      running(kAwaits, {"train (/u/train.py:1)", "tidy (/u/train.py:9)", "gc.collect() (/u/train.py:10)"});
  EXPECT_EQ(finding.cause, Cause::kHostGraphBuilding) << finding.title;
  EXPECT_THAT(finding.title, HasSubstr("The GPU waits for garbage collection in the training process: tidy"));
  EXPECT_THAT(finding.advice, HasSubstr("gc.collect() less often"));
}

// Each `every` seconds: kernels, and then a second of which `part` waits for the disk.
Finding synced(double every, double part) {
  RecordingBuilder builder(100);
  const auto writes = [&](double t) { return std::fmod(t - 0.01, every) > every - 1; };
  builder.gpu(0, [&](double t) { return writes(t) ? 1 - part : 1.0; }).sleeping_in(WaitChannel::kDisk);
  builder.process({7, 1, 0, 100, 0.05, true, {cell(Metric::kWriteBytes, 8'000'000)}}).context(7, 0, 0, 100);
  for (int i = 0; i < 100; ++i) {
    const double until = writes(i + 1) ? i + 1 - part : i + 1;
    builder.stacks(7, i, until, kAwaits);
    builder.stacks(7, until, i + 1, {"train (/u/train.py:1)", "keep (/u/train.py:9)", "os.fsync() (/u/train.py:12)"});
  }
  return explain(builder.build()).findings.front();
}

TEST(Kinds, AWaitForTheDiskIsThatAndInEachStepRatherALogThanAState) {
  const Finding log = synced(1, 0.3), state = synced(10, 1);
  for (const Finding& finding : {log, state}) {
    EXPECT_THAT(finding.title, HasSubstr("until the disk has what the job writes (fsync): keep (train.py)"));
    EXPECT_THAT(finding.advice, HasSubstr("fsync"));
    EXPECT_EQ(finding.role.part, LoopPart::kUnknown) << "a log is no state";
  }
  EXPECT_EQ(log.cause, Cause::kLoggingUpload);
  EXPECT_THAT(state.candidates, ElementsAre(Cause::kCheckpointSync, Cause::kLoggingUpload));
}

TEST(Kinds, AServerThatNobodyHasAskedYetDoesNotStartUp) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double t) { return t > 30 && std::fmod(t, 10) < 3 ? 1.0 : 0.0; }).sleeping_in(WaitChannel::kPoll);
  builder.process(100, 1, 0, 100, 0.02).context(100, 0, 0, 100);
  builder.waits_for(100, {WaitKind::kAccepted, "8080"});
  builder.stacks(100, 0, 100, {"main (/u/serve.py:12)", "select (/usr/lib/python3.11/selectors.py:1)"});
  const Explanation e = explain(builder.build());
  EXPECT_EQ(find(e, Cause::kStartupLoad), nullptr) << everything(e);
  const auto first = std::find_if(e.findings.begin(), e.findings.end(), [](const Finding& finding) {
    return finding.claims.front().account == Account::kStartup;
  });
  ASSERT_NE(first, e.findings.end());
  EXPECT_EQ(first->cause, Cause::kInteractiveHoldingGpu);
  EXPECT_EQ(first->title, "Before its first kernel the process waits for who connects to it: main (serve.py)");
  EXPECT_THAT(first->evidence, Contains(HasSubstr("at its own port 8080")));
}

// The first finding about the start of a process that is told what to do through a pipe, or at a terminal.
Finding told_what_to_do(WaitChannel channel, bool by_its_child, const Frames& at = {"main (/u/session.py:5)"},
                        bool two = false) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double t) { return t > 30 && std::fmod(t, 10) < 3 ? 1.0 : 0.0; }).sleeping_in(channel);
  builder.process(100, 1, 0, 100, 0.02).context(100, 0, 0, 100);
  if (by_its_child) builder.process(101, 100, 0, 100, 0.02);
  builder.stacks(100, 0, 100, at);
  if (two) {
    builder.gpu(1, [](double t) { return t > 30 && std::fmod(t, 10) < 3 ? 1.0 : 0.0; });
    builder.process(200, 1, 0, 100, 0.02).context(200, 1, 0, 100).stacks(200, 0, 100, at);
  }
  for (const Finding& finding : explain(builder.build()).findings)
    if (finding.claims.front().account == Account::kStartup) return finding;
  return {};
}

TEST(Kinds, WhoIsToldWhatToDoHasNotBegunToStart) {
  EXPECT_EQ(told_what_to_do(WaitChannel::kPipe, false).title,
            "Start-up: before its first kernel the process waits for what comes through a pipe or local socket, mostly "
            "main (session.py)");
  EXPECT_THAT(told_what_to_do(WaitChannel::kTerminal, false).title, HasSubstr("the process waits at a terminal"));
  EXPECT_THAT(told_what_to_do(WaitChannel::kPipe, false).candidates,
              ElementsAre(Cause::kInteractiveHoldingGpu, Cause::kStartupLoad));
  EXPECT_EQ(told_what_to_do(WaitChannel::kPipe, true).cause, Cause::kStartupLoad) << "it may wait for what it started";
  const Finding imports =
      told_what_to_do(WaitChannel::kPipe, false,
                      {"<module> (/u/session.py:1)", "_find_and_load (<frozen importlib._bootstrap>:1176)",
                       "<module> (/usr/lib/python3/site-packages/torch/__init__.py:1)"});
  EXPECT_THAT(imports.title, Not(HasSubstr("waits"))) << "its stacks say what it did";
  const Finding both = told_what_to_do(WaitChannel::kPipe, false, {"main (/u/session.py:5)"}, true);
  EXPECT_THAT(both.title, HasSubstr("before their first kernels processes wait for what comes through a pipe"));
  EXPECT_THAT(both.advice, HasSubstr("who sends them what they do"));
}

// 0.35 s each 4 s, which is no long pause, in a function that ran before the first kernel, too, or did not.
Finding reads_again(const std::string& before) {
  RecordingBuilder builder(80);
  const auto reads = [](double t) { return std::fmod(t - 0.01, 4) > 3; };
  builder.gpu(0, [&](double t) { return t <= 4 ? 0.0 : reads(t) ? 0.65 : 1.0; });
  builder.process(7, 1, 0, 80, 0.9).context(7, 0, 0, 80).stacks(7, 0, 4, {"train (/u/train.py:1)", before});
  for (int i = 4; i < 80; ++i) {
    const double until = reads(i + 1) ? i + 0.65 : i + 1;
    builder.stacks(7, i, until, kAwaits);
    builder.stacks(7, until, i + 1, {"train (/u/train.py:1)", "load_rows (/u/train.py:9)"});
  }
  const Explanation e = explain(builder.build());
  const Finding* finding = find(e, Cause::kInputInMainProcess);
  EXPECT_NE(finding, nullptr) << everything(e);
  return finding ? *finding : Finding{};
}

TEST(Kinds, WhatIsReadNowAndThenAndWasBeforeTheFirstKernelMayBeTheSame) {
  EXPECT_THAT(reads_again("load_rows (/u/train.py:9)").candidates,
              ElementsAre(Cause::kInputInMainProcess, Cause::kDuplicatePreprocessing));
  EXPECT_THAT(reads_again("build (/u/train.py:20)").candidates,
              ElementsAre(Cause::kInputInMainProcess, Cause::kDuplicatePreprocessing));
}

// Each second: kernels for 0.7 of it, and then code; in each third one another thread has the interpreter beside that
// code, or all the time.
Finding beside_the_interpreter(bool all_the_time) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.7; }).sleeping_in(WaitChannel::kRunning, 0.5);
  builder.process(7, 1, 0, 60, 0.4).context(7, 0, 0, 60);
  const std::vector<std::string> packs{"run (/u/train.py:19)", "pack (/u/train.py:20)"};
  for (int i = 0; i < 60; ++i) {
    const bool third = i % 3 == 0;
    builder.stacks(7, i, i + 0.3, {"train (/u/train.py:1)", "mix (/u/train.py:9)"}).stacks(7, i + 0.3, i + 1, kAwaits);
    builder.stacks({7, 1.0 * i, i + 0.3, packs, 1, third})
        .stacks({7, i + 0.3, i + 1.0, packs, 1, third && all_the_time});
  }
  return explain(builder.build()).findings.front();
}

TEST(Kinds, TheInterpreterCostsNoMoreThanTheTimeInWhichAnotherThreadHadIt) {
  const Finding finding = beside_the_interpreter(false);
  ASSERT_THAT(finding.candidates, Contains(Cause::kGilContention)) << finding.title;
  const OwnLimit* own = finding.limit_of(Cause::kGilContention);
  ASSERT_NE(own, nullptr) << finding.bound;
  EXPECT_NEAR(own->high, 1 / (1 - 0.1), 0.04);
  EXPECT_THAT(own->condition, HasSubstr("if no other thread had the interpreter (GIL):"));
  EXPECT_EQ(beside_the_interpreter(true).limit_of(Cause::kGilContention), nullptr) << "all of it may have been then";
}

// Each second: kernels for 0.7 of it, and then code of its own. `awaits`: it waits for all of them.
std::vector<Cause> set_of(bool awaits) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.7; }).sleeping_in(WaitChannel::kFutex).process(7, 1, 0, 60, 0.35);
  builder.context(7, 0, 0, 60);
  for (int i = 0; i < 60; ++i) {
    const double until = awaits ? i + 0.7 : i + 0.4;
    builder.stacks(7, i, until, kAwaits).stacks(7, until, i + 1, {"train (/u/train.py:1)", "mix (/u/train.py:9)"});
  }
  return explain(builder.build()).findings.front().candidates;
}

TEST(Kinds, WhereKernelsOnlyRunWhileTheyAreAwaitedNoneIsLaunchedBetween) {
  EXPECT_THAT(set_of(true), Not(Contains(Cause::kLaunchBound)));
  EXPECT_THAT(set_of(false), Contains(Cause::kLaunchBound));
}

// Each second: kernels for 0.7 of it, and then code of its own, which reads so much, or all of that in one second.
Finding reading(std::int64_t bytes, bool once = false) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.7; }).process({7, 1, 0, 60, 0.35, true, {cell(Metric::kReadChars, bytes)}});
  builder.context(7, 0, 0, 60);
  for (int i = 0; i < 60; ++i)
    builder.stacks(7, i, i + 0.7, kAwaits).stacks(7, i + 0.7, i + 1, {"train (/u/train.py:1)", "mix (/u/train.py:9)"});
  const auto kept = [&](double second) { return second < 30 ? 0.0 : 60.0 * static_cast<double>(bytes); };
  return explain(once ? with(builder.build(), SourceKind::kProcess, 0, Metric::kReadChars, kept) : builder.build())
      .findings.front();
}

TEST(Kinds, WhoReadsMuchInEachStepLoadsItsData) {
  const Finding loads = reading(20'000'000);
  EXPECT_EQ(loads.cause, Cause::kInputInMainProcess) << loads.title;
  EXPECT_THAT(loads.title, HasSubstr("reads files, and for what it does with them: mix (train.py)"));
  EXPECT_THAT(loads.evidence, Contains(HasSubstr("it read 19.1 MiB/s through files and pipes")));
  EXPECT_THAT(reading(100'000).candidates, Contains(Cause::kHostGraphBuilding));
  EXPECT_THAT(reading(20'000'000, true).candidates, Contains(Cause::kHostGraphBuilding)) << "once is no step's";
}

// Each second: kernels for 0.7 of it, and then code of its own that sleeps, while so much is written in all of them, or
// in one.
TEST(Kinds, WhatWasWrittenOnceIsNoReasonForEachStep) {
  const auto causes = [](bool once) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double) { return 0.7; })
        .process({7, 1, 0, 60, 0.1, true, {cell(Metric::kWriteBytes, 200'000'000)}});
    builder.context(7, 0, 0, 60);
    for (int i = 0; i < 60; ++i)
      builder.stacks(7, i, i + 0.7, kAwaits).stacks(7, i + 0.7, i + 1, {"train (/u/t.py:1)", "mix (/u/t.py:9)"});
    const auto kept = [](double second) { return second < 5 ? 0.0 : 12e9; };
    return explain(once ? with(builder.build(), SourceKind::kProcess, 0, Metric::kWriteBytes, kept) : builder.build())
        .findings.front()
        .candidates;
  };
  EXPECT_THAT(causes(false), Contains(Cause::kCheckpointSync));
  EXPECT_THAT(causes(true), Not(Contains(Cause::kCheckpointSync)));
}

// For the second half nobody saw what it was at.
TEST(Kinds, WhereStacksWereReadNoMoreThanFourCausesAreNamed) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double t) { return t > 30 ? 0.4 : 1.0; }).sleeping_in(WaitChannel::kPoll, 0.3);
  builder.process(7, 1, 0, 60, 0.3).context(7, 0, 0, 60).stacks(7, 0, 30, kAwaits);
  const Explanation e = explain(builder.build());
  ASSERT_FALSE(e.findings.empty());
  for (const Finding& finding : e.findings) EXPECT_LE(finding.candidates.size(), 4U) << finding.title;
}

}  // namespace
}  // namespace headroom
