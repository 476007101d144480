// SPDX-License-Identifier: Apache-2.0
// Findings about what a process waited for, where several things may be true at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analyze/testing.h"
#include "diagnose/explain.h"
#include "diagnose/testing.h"
#include "model/notes.h"

namespace headroom {
namespace {

using testing::cell;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RecordingBuilder;

// Replaces a metric of the process's rows.
void set(Recording& recording, std::int64_t pid, Metric metric, const std::function<std::int64_t(double)>& value) {
  for (std::size_t i = 0; i < recording.sources.size(); ++i) {
    if (recording.sources[i].kind != SourceKind::kProcess || process_of(recording.sources[i]).pid != pid) continue;
    Track& track = recording.tracks[i];
    std::erase_if(track.columns, [&](const Column& old) { return old.metric == metric; });
    Column column{metric, {}, {}};
    for (const Nanos at : track.at) column.values.push_back(value(seconds(at - recording.meta.start)));
    track.columns.push_back(std::move(column));
  }
}

std::int64_t stored(WaitChannel channel) { return static_cast<std::int64_t>(channel); }

bool odd(double t) { return std::lround(t) % 2 == 1; }

// Kernels for 0.6 and 0.4 of the seconds in turn; the main thread runs for as long, and waits on a connection.
Recording spinner() {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double t) { return odd(t) ? 0.7 : 0.5; }).process(100, 1, 0, 60, 0.6).context(100, 0, 0, 60);
  Recording recording = builder.build();
  set(recording, 100, Metric::kMainCpu,
      [](double t) { return static_cast<std::int64_t>((0.6 * t + (odd(t) ? 0.1 : 0.0)) * 1e9); });
  set(recording, 100, Metric::kWaitChannel,
      [](double t) { return stored(std::lround(t) % 3 == 0 ? WaitChannel::kSocket : WaitChannel::kRunning); });
  return recording;
}

TEST(Waits, AMainThreadThatSpinsIsNoCodeOfTheJob) {
  const Explanation e = explain(spinner());
  EXPECT_EQ(e.ledger.total(Account::kHostCode), 0);
  ASSERT_FALSE(e.findings.empty());
  EXPECT_THAT(e.findings[0].candidates, Contains(Cause::kSlowStorage));
  EXPECT_THAT(e.findings[0].evidence, Contains(HasSubstr("for as long as kernels ran")));
}

TEST(Waits, AMainThreadThatWorksInTheGapsIsCodeOfTheJob) {
  Recording recording = spinner();  // as long on average, but longer where kernels ran for less
  set(recording, 100, Metric::kMainCpu,
      [](double t) { return static_cast<std::int64_t>((0.6 * t - (odd(t) ? 0.1 : 0.0)) * 1e9); });
  const Explanation e = explain(recording);
  EXPECT_GT(e.ledger.total(Account::kHostCode), 15 * kSecond);
  ASSERT_FALSE(e.findings.empty());
  EXPECT_THAT(e.findings[0].candidates, Contains(Cause::kHostGraphBuilding));
  EXPECT_THAT(e.findings[0].candidates, Contains(Cause::kSlowStorage)) << "it was seen on a connection, too";
  EXPECT_THAT(e.findings[0].evidence, Contains(HasSubstr("on a connection")));
}

// Idle for 0.8 of the time, in which the main thread mostly wants a core.
Recording starved(std::vector<Cell> more) {
  more.push_back(cell(Metric::kRunDelay, 600'000'000));
  RecordingBuilder builder(100);
  builder.machine(2, 2).gpu(0, [](double) { return 0.2; }).process({100, 1, 0, 100, 0.1, true, std::move(more)});
  return builder.context(100, 0, 0, 100).build();
}

TEST(Waits, AWaitForACoreIsNotAllOfItWhereStorageIsWrittenBetween) {
  const Explanation alone = explain(starved({}));
  ASSERT_FALSE(alone.findings.empty());
  EXPECT_EQ(alone.findings[0].cause, Cause::kCpuOversubscribed);
  const Explanation writing = explain(starved({cell(Metric::kWriteBytes, 3'000'000)}));
  ASSERT_FALSE(writing.findings.empty());
  EXPECT_FALSE(writing.findings[0].cause);
  EXPECT_THAT(writing.findings[0].candidates, Contains(Cause::kCpuOversubscribed));
  EXPECT_THAT(writing.findings[0].candidates, Contains(Cause::kCheckpointSync));
}

TEST(Waits, WhoWantsACoreAndWaitsForItsKernelsInEachStepSaysBoth) {
  const auto first = [](double waits) {
    RecordingBuilder builder(100);
    builder.machine(2, 2).gpu(0, [](double) { return 0.7; }).context(100, 0, 0, 100);
    builder.process({100, 1, 0, 100, 0.05, true, {cell(Metric::kRunDelay, 300'000'000)}});
    for (int i = 0; i < 100; ++i) {
      builder.stacks(100, i, i + 1 - waits, {"train (/u/train.py:1)", "pad (/u/train.py:9)"});
      builder.stacks(100, i + 1 - waits, i + 1, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
    }
    return explain(builder.build()).findings.front();
  };
  const Finding both = first(0.6);
  EXPECT_EQ(both.cause, Cause::kCpuOversubscribed) << both.title;
  EXPECT_THAT(both.evidence, Contains(HasSubstr("it waits for its kernels in train (train.py), in 60 % of the looks")));
  EXPECT_THAT(both.advice, HasSubstr("wait for its kernels less often"));
  EXPECT_THAT(first(0.1).advice, Not(HasSubstr("for its kernels")));
}

TEST(Waits, MoreWorkersAreNotRefusedWhileCoresAreLeft) {
  const auto loader = [](double used) {
    RecordingBuilder builder(100);
    builder.machine(2, used).gpu(0, [](double) { return 0.25; }).process(100, 1, 0, 100, 0.05).context(100, 0, 0, 100);
    return explain(builder.process({101, 100, 0, 100, 0.3, true, {cell(Metric::kRunDelay, 300'000'000)}}).build());
  };
  const Explanation full = loader(2), some = loader(1.4);
  ASSERT_FALSE(full.findings.empty());
  EXPECT_EQ(full.findings[0].cause, Cause::kCpuOversubscribed);
  EXPECT_THAT(full.findings[0].advice, HasSubstr("more workers would take cores from what else runs on this machine"));
  ASSERT_FALSE(some.findings.empty());
  EXPECT_THAT(some.findings[0].candidates, Contains(Cause::kInputTooFewWorkers));
  EXPECT_THAT(some.findings[0].advice, Not(HasSubstr("would share the same cores")));
}

TEST(Waits, ANotebookWaitsForWhoeverTypes) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double t) { return std::fmod(t - 0.01, 10) < 7 ? 0.0 : 1.0; });
  builder.process(100, 1, 0, 100, 0.01).context(100, 0, 0, 100);
  Recording recording = builder.build();
  set(recording, 100, Metric::kWaitChannel, [](double) { return stored(WaitChannel::kSocket); });
  EXPECT_EQ(find(explain(recording), Cause::kInteractiveHoldingGpu), nullptr);
  for (Source& source : recording.sources)
    if (source.kind == SourceKind::kProcess) source.attrs["cmdline"] = "python3 -m ipykernel_launcher -f kernel.json";
  const Explanation e = explain(recording);
  ASSERT_FALSE(e.findings.empty());
  EXPECT_FALSE(e.findings[0].cause);
  EXPECT_EQ(e.findings[0].candidates.front(), Cause::kInteractiveHoldingGpu);
}

TEST(Waits, AProcessThatWasWatchedIsNotCalledTooShort) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.5; }).process(100, 1, 0, 60, 0.01).context(100, 0, 0, 60);
  Recording recording = builder.build();
  for (std::size_t i = 0; i < recording.sources.size(); ++i)  // nobody looked in the second half
    if (recording.sources[i].kind == SourceKind::kProcess) {
      Track& track = recording.tracks[i];
      track.at.resize(30);
      for (Column& column : track.columns) column.values.resize(30);
    }
  ExplainOptions options;
  options.window = std::pair(40 * kSecond, 60 * kSecond);
  const Explanation e = explain(recording, options);
  ASSERT_FALSE(e.findings.empty());
  EXPECT_THAT(e.findings[0].title, HasSubstr("was not looked at"));
  for (const Finding& finding : e.findings) EXPECT_THAT(finding.evidence, Not(Contains(HasSubstr("long enough"))));
}

TEST(Waits, OfAShortRecordingMostOfItIsLong) {
  const auto ends_at = [](double last_kernel) {
    RecordingBuilder builder(9, 0.5);
    builder.gpu(0, [=](double t) { return t <= last_kernel ? 1.0 : 0.0; }).process(100, 1, 0, 9, 0.01);
    return explain(builder.context(100, 0, 0, 9).build());
  };
  const Explanation e = ends_at(3);
  const Finding* held = find(e, Cause::kUnreleasedAfterWork);
  ASSERT_NE(held, nullptr);
  EXPECT_EQ(held->confidence, Confidence::kLow);
  EXPECT_THAT(held->candidates, Contains(Cause::kHang));
  EXPECT_EQ(find(ends_at(6), Cause::kUnreleasedAfterWork), nullptr);
}

TEST(Waits, CheckpointsDoNotHideThatTheGpuIsHeld) {
  RecordingBuilder builder(50);
  builder.gpu(0, [](double t) { return t <= 10 ? 1.0 : 0.0; }).process(100, 1, 0, 50, 0.9).context(100, 0, 0, 50);
  Recording recording = builder.build();
  set(recording, 100, Metric::kWriteBytes, [](double t) { return std::lround(t / 5) * 100'000'000; });
  const Explanation e = explain(recording);
  EXPECT_GT(e.ledger.total(Account::kCheckpoint), 0);
  const Finding* held = find(e, Cause::kUnreleasedAfterWork);
  ASSERT_NE(held, nullptr);
  EXPECT_NEAR(seconds(held->cost()), seconds(e.ledger.total(Account::kTeardown)), 0.1);
}

TEST(Waits, ARareThreadOnARareGpuDoesNotSpin) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double t) { return odd(t) ? 0.25 : 0.2; }).process(100, 1, 0, 60, 0.13).context(100, 0, 0, 60);
  Recording recording = builder.build();
  set(recording, 100, Metric::kMainCpu,
      [](double t) { return static_cast<std::int64_t>((0.13 * t + (odd(t) ? 0.01 : 0.0)) * 1e9); });
  for (const Finding& finding : explain(recording).findings)
    EXPECT_THAT(finding.evidence, Not(Contains(HasSubstr("for as long as kernels ran"))));
}

TEST(Waits, WorkersThatReadMayWaitForThatAsWell) {
  RecordingBuilder builder(100);
  builder.machine(2, 2).gpu(0, [](double) { return 0.25; }).process(100, 1, 0, 100, 0.05).context(100, 0, 0, 100);
  builder.process(
      {101, 100, 0, 100, 0.2, true, {cell(Metric::kRunDelay, 400'000'000), cell(Metric::kReadBytes, 50'000'000)}});
  const Explanation e = explain(builder.build());
  ASSERT_FALSE(e.findings.empty());
  EXPECT_FALSE(e.findings[0].cause);
  EXPECT_THAT(e.findings[0].candidates, Contains(Cause::kSlowStorage));
  EXPECT_THAT(e.findings[0].candidates, Contains(Cause::kCpuOversubscribed));
}

TEST(Waits, ProcessesInTurnOfAJobThatFailedMayBeRetries) {
  const auto in_turn = [](int exit_code) {
    RecordingBuilder builder(80);
    builder.gpu(0, [](double t) { return std::fmod(t - 0.5, 20) < 1 ? 0.0 : 1.0; });
    for (int i = 0; i < 4; ++i)
      builder.process(100 + i, 1, 20 * i, 20 * i + 20, 0.9).context(100 + i, 0, 20 * i + 2, 20 * i + 19);
    builder.meta().exit_code = exit_code;
    return explain(builder.build());
  };
  const Explanation failed = in_turn(1);
  const Finding* finding = find(failed, Cause::kOomRestartLoop);
  ASSERT_NE(finding, nullptr);
  EXPECT_FALSE(finding->cause) << "nothing shows that memory was full";
  EXPECT_NE(finding->confidence, Confidence::kHigh);
  EXPECT_THAT(finding->evidence, Contains(HasSubstr("exit code 1")));
  EXPECT_EQ(find(in_turn(0), Cause::kOomRestartLoop), nullptr);
}

TEST(Waits, WorkOfHelpersIsNoProofThatItWasWaitedFor) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double) { return 0.4; }).process(100, 1, 0, 100, 0.02).context(100, 0, 0, 100);
  builder.process(101, 100, 0, 50, 0.5);  // then the same pauses without it
  const Explanation e = explain(builder.build());
  ASSERT_GE(e.findings.size(), 2U);
  for (const Finding& finding : e.findings) {
    ASSERT_TRUE(finding.gain) << finding.title;
    EXPECT_NEAR(finding.gain->high, 2.5, 0.1) << finding.title;
  }
}

TEST(Waits, TheLastProgramAfterTheLastKernelCountsInItsBound) {
  RecordingBuilder builder(89);
  builder.gpu(0, [](double t) { return std::fmod(t - 0.01, 30) < 20 ? 1.0 : 0.0; });
  builder.process(100, 1, 0, 89, 0.01).context(100, 0, 0, 89);
  for (const double begin : {20, 50, 80}) builder.process(101 + std::lround(begin), 100, begin, begin + 9, 0.9);
  const Explanation e = explain(builder.build());
  const Finding* finding = find(e, Cause::kValidation);
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->title, HasSubstr("a program runs"));
  ASSERT_TRUE(finding->gain);
  EXPECT_GT(finding->gain->high, 1.45) << "what follows the last kernel may be the same program";
}

// A job that failed after 20 s, whose memory was so full at each second.
Finding failed(const std::function<double(double)>& gib, const std::string& said = "", double when = 20.3) {
  RecordingBuilder builder(20.4);
  builder.gpu(0, [](double) { return 0.95; }).process(7, 1, 0, 20.4, 0.5).context(7, 0, 0, 20.4);
  builder.meta().exit_code = 1;
  if (!said.empty())
    builder.sink().add_event(
        to_event(events::Note{.text = std::string(kNoteOutOfMemory) + said, .line = {}}, RecordingBuilder::at(when)));
  Recording recording = builder.build();
  for (std::size_t i = 0; i < recording.sources.size(); ++i)
    if (recording.sources[i].kind == SourceKind::kGpu)
      for (Column& column : recording.tracks[i].columns)
        for (std::size_t row = 0; column.metric == Metric::kMemoryUsed && row < column.values.size(); ++row)
          column.values[row] =
              static_cast<std::int64_t>(gib(seconds(recording.tracks[i].at[row] - recording.meta.start)) * (1 << 30));
  const Explanation e = explain(recording);
  const Finding* finding = find(e, Cause::kMemoryLimited);
  return finding ? *finding : Finding{};
}

TEST(OutOfMemory, FullMemoryWhenTheJobFailedIsSaid) {
  const Finding full = failed([](double t) { return t > 10 ? 47.9 : 20; });
  EXPECT_EQ(full.title, "GPU memory was full, or nearly so, when the job failed");
  EXPECT_THAT(full.evidence, Contains(HasSubstr("47.9 GiB of 48.0 GiB in use")));
  EXPECT_THAT(full.advice, Not(HasSubstr("keeps of each step"))) << "it stood still";
}

TEST(OutOfMemory, MemoryThatGrewSoFastThatItMayHaveBeenFullIsSaid) {
  const Finding grew = failed([](double t) { return 2.14 * t; });
  EXPECT_EQ(grew.title, "GPU memory was filling up when the job failed");
  EXPECT_EQ(grew.confidence, Confidence::kLow);
  EXPECT_THAT(grew.evidence, Not(Contains(HasSubstr("grew until then")))) << "it is said with how full it was";
  EXPECT_THAT(grew.advice, HasSubstr("see what it keeps of each step"));
  EXPECT_EQ(failed([](double t) { return 1.0 * t; }).title, "");
}

TEST(OutOfMemory, MemoryThatWasFullOnceAndNotAtTheEndIsNotSaidToBe) {
  EXPECT_EQ(failed([](double t) { return t < 10 ? 47.9 : 10; }).title,
            "GPU memory had been nearly full before the job failed");
}

TEST(OutOfMemory, WhatItsOutputSaysIsTheReason) {
  const Finding told = failed([](double) { return 10; }, "CUDA out of memory. Tried to allocate 8 GiB");
  EXPECT_EQ(told.title, "The job failed because a GPU's memory did not suffice");
  EXPECT_EQ(told.cause, Cause::kMemoryLimited);
  EXPECT_EQ(told.confidence, Confidence::kHigh);
  EXPECT_THAT(told.evidence.front(), HasSubstr("Tried to allocate 8 GiB"));
  EXPECT_EQ(failed([](double) { return 10; }, "CUDA out of memory", 5).title, "") << "it went on after that";
  EXPECT_EQ(failed([](double) { return 10; }, "CUDA out of memory", 20.405).cause, Cause::kMemoryLimited)
      << "read when it had ended";
}

TEST(OutOfMemory, AsItsLastWordsItIsNoHang) {
  const auto may_hang = [](double said, int code) {
    RecordingBuilder builder(100);
    builder.gpu(0, [](double t) { return t < 60 ? 1.0 : 0.0; }).sleeping_in(WaitChannel::kFutex, 1);
    builder.process(7, 1, 0, 100, 0.0).context(7, 0, 0, 100);
    builder.meta().exit_code = code;
    builder.sink().add_event(to_event(events::Note{.text = std::string(kNoteOutOfMemory) + "no memory", .line = {}},
                                      RecordingBuilder::at(said)));
    return find(explain(builder.build()), Cause::kHang) != nullptr;  // also in a set
  };
  EXPECT_FALSE(may_hang(99, 1));
  EXPECT_TRUE(may_hang(61, 1)) << "it lived with that for long";
  EXPECT_TRUE(may_hang(99, 137)) << "somebody else ended it";
}

TEST(Notes, ThatNvtxIsNotReceivedIsAProblemOfWhoWantsIt) {
  const auto answer = [](const std::string& why) -> std::optional<HealthCheck> {
    RecordingBuilder builder(20);
    builder.gpu(0, [](double) { return 0.95; });
    builder.sink().add_event(
        to_event(events::Note{.text = std::string(kNoteNvtx) + why, .line = {}}, RecordingBuilder::at(0)));
    for (HealthCheck& check : explain(builder.build()).health)
      if (check.check == "nvtx_ranges") return check;
    return std::nullopt;
  };
  const auto taken = answer("NVTX_INJECTION64_PATH names another library: /x.so");
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->good, Answer::kNo);
  EXPECT_THAT(taken->evidence, HasSubstr("NVTX ranges are not recorded: NVTX_INJECTION64_PATH names"));
  EXPECT_EQ(answer("there is no library").value().good, Answer::kUnknown);
  EXPECT_FALSE(answer("not wanted (--no-nvtx)"));
}

// Looks are a reading apart: of waits shorter than that, some are for the kernels between them.
TEST(Waits, LooksBesideShortWaitsAreNotSaidToBeOfThemAlone) {
  const auto seen = [](const std::function<double(double)>& busy) {
    RecordingBuilder builder(60);
    builder.gpu(0, busy).sleeping_in(WaitChannel::kFutex).process(7, 1, 0, 60, 0.01).context(7, 0, 0, 60);
    for (const Finding& finding : explain(builder.build()).findings)
      for (const std::string& line : finding.evidence)
        if (line.starts_with("when looked at")) return line;
    return std::string();
  };
  EXPECT_THAT(seen([](double) { return 0.7; }),
              HasSubstr("its main thread was on a lock (100 %); waits for its kernels may be among these"));
  const std::string long_wait = seen([](double t) { return t <= 20 || t > 50 ? 1.0 : 0.0; });
  EXPECT_THAT(long_wait, HasSubstr("its main thread was"));
  EXPECT_THAT(long_wait, Not(HasSubstr("its kernels")));
}

TEST(Waits, WhoWasSeenOnTheCpuIsNotSaidToHaveLeftItAlone) {
  const auto first = [](WaitChannel channel) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double) { return 0.7; }).sleeping_in(channel).process(7, 1, 0, 60, 0.01).context(7, 0, 0, 60);
    return explain(builder.build()).findings.front();
  };
  const Finding ran = first(WaitChannel::kRunning), slept = first(WaitChannel::kPoll);
  EXPECT_THAT(slept.told_apart_from, Contains(HasSubstr("host code")));
  EXPECT_THAT(ran.told_apart_from, Not(Contains(HasSubstr("host code"))));
  EXPECT_THAT(ran.candidates, Contains(Cause::kHostGraphBuilding));
}

}  // namespace
}  // namespace headroom
