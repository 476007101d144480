// SPDX-License-Identifier: Apache-2.0
// Sentences that a user of the first hour found to be untrue.
#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "analyze/testing.h"
#include "diagnose/explain.h"
#include "diagnose/testing.h"

namespace headroom {
namespace {

using ::testing::AllOf;
using testing::cell;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::RecordingBuilder;
using ::testing::UnorderedElementsAre;

const Frames kReducesAtOnce{"train (/u/train.py:1)",
                            "all_reduce (/x/site-packages/torch/distributed/distributed_c10d.py:1)"};
const Frames kReceivesAtOnce{"train (/u/train.py:1)",
                             "Connection.recv (/usr/lib/python3.11/multiprocessing/connection.py:1)"};

TEST(FirstHour, AStoppedProcessIsSaidToBeStopped) {
  RecordingBuilder builder(40);
  builder.gpu(0, [](double t) { return t <= 20 ? 1.0 : 0.0; }).process(7, 1, 0, 40, 0.01).context(7, 0, 0, 40);
  Recording recording = builder.build();
  for (std::size_t i = 0; i < recording.sources.size(); ++i)
    if (recording.sources[i].kind == SourceKind::kProcess)
      for (Column& column : recording.tracks[i].columns)
        for (std::size_t row = 21; row < column.values.size(); ++row)
          if (column.metric == Metric::kProcessState) column.values[row] = 'T';
  const Explanation e = explain(recording);
  ASSERT_FALSE(e.findings.empty());
  EXPECT_EQ(e.findings.front().cause, Cause::kProcessStopped);
  EXPECT_THAT(e.findings.front().bound, HasSubstr("x at most, if it had not been stopped"));
  EXPECT_THAT(e.headline, HasSubstr("50 % while the job was stopped"));
}

TEST(FirstHour, AStoppedProcessThatWentOnSaysUntilWhen) {
  RecordingBuilder builder(40);
  builder.gpu(0, [](double t) { return t > 10 && t <= 20 ? 0.0 : 1.0; }).process(7, 1, 0, 40, 0.01);
  const Recording recording = with(builder.context(7, 0, 0, 40).build(), SourceKind::kProcess, 0, Metric::kProcessState,
                                   [](double t) { return t > 10 && t <= 20 ? 'T' : 'S'; });
  const Explanation e = explain(recording);
  ASSERT_FALSE(e.findings.empty());
  EXPECT_EQ(e.findings.front().cause, Cause::kProcessStopped);
  EXPECT_THAT(e.findings.front().evidence, Contains(AllOf(HasSubstr("in state T"), HasSubstr(" to "))));
  EXPECT_THAT(e.findings.front().evidence, Not(Contains(HasSubstr(" on"))));
}

TEST(FirstHour, AStartThatWaitsForItsWorkersSaysWhatEachOfThemMakes) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double t) { return t <= 30 ? 0.0 : 1.0; }).process(7, 1, 0, 60, 0.05).context(7, 0, 0, 60);
  builder.process(8, 7, 1, 60, 0.5).process(9, 7, 1, 60, 0.5);
  builder.stacks(7, 0, 30,
                 {"train (/u/train.py:1)", "_try_get_data (/x/site-packages/torch/utils/data/dataloader.py:1)"});
  for (const std::int64_t worker : {8, 9})
    builder.stacks(worker, 1, 30,
                   {"_worker_loop (/x/site-packages/torch/utils/data/_utils/worker.py:1)", "build (/u/train.py:9)"});
  const Explanation e = explain(builder.build());
  const Finding* start = find(e, Cause::kStartupLoad);
  ASSERT_NE(start, nullptr);
  EXPECT_THAT(start->evidence, Contains(HasSubstr("what its workers were at then, by their Python stacks: build")));
  EXPECT_THAT(start->advice,
              HasSubstr("where each of its 2 workers makes the same before the first batch: make it once"));
}

// Two workers that stay, and programs of theirs that are there for one look each.
TEST(FirstHour, ProgramsOfWorkersAreNoWorkersThatWereStartedAnew) {
  RecordingBuilder builder(40);
  builder.gpu(0, [](double) { return 0.2; }).process(7, 1, 0, 40, 0.01).context(7, 0, 0, 40);
  builder.process(8, 7, 0, 40, 0.1).process(9, 7, 0, 40, 0.1);
  for (int t = 2; t < 39; ++t) builder.process(100 + t, t % 2 == 0 ? 8 : 9, t - 0.1, t + 0.9, 0.01);
  const Explanation e = explain(builder.build());
  for (const Finding& finding : e.findings) {
    EXPECT_NE(finding.cause, Cause::kEpochWorkerRestart);
    EXPECT_THAT(finding.evidence, Not(Contains(HasSubstr("4 worker"))));
  }
  ASSERT_FALSE(e.findings.empty());
  EXPECT_THAT(e.findings.front().evidence, Contains(HasSubstr("what it started (2 processes at once) used")));
}

// The end of a program is noticed at the next reading, and the next one has begun by then.
TEST(FirstHour, ProgramsOneAfterTheOtherAreNotThereAtOnce) {
  RecordingBuilder builder(40);
  builder.gpu(0, [](double) { return 0.2; }).process(7, 1, 0, 40, 0.01).context(7, 0, 0, 40);
  for (int i = 0; i < 13; ++i) builder.process(100 + i, 7, 3 * i + 0.2, 3 * i + 4, 0.5);  // seen until 3 * i + 3
  const Explanation e = explain(builder.build());
  ASSERT_FALSE(e.findings.empty());
  EXPECT_THAT(e.findings.front().evidence, Contains(HasSubstr("what it started (1 process at once) used")));
}

TEST(FirstHour, WhatIsWrittenMayBeOutput) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.25; });
  builder.process({7, 1, 0, 60, 0.05, true, {cell(Metric::kWriteBytes, 50'000'000)}}).context(7, 0, 0, 60);
  builder.stacks(7, 0, 60, {"report (/u/train.py:4)"});
  const Explanation e = explain(builder.build());
  ASSERT_FALSE(e.findings.empty());
  EXPECT_FALSE(e.findings.front().cause);
  EXPECT_THAT(e.findings.front().candidates, AllOf(Contains(Cause::kCheckpointSync), Contains(Cause::kLoggingUpload)));
  EXPECT_THAT(e.headline, Not(HasSubstr("checkpoint")));
}

// Encoding what is written may take the time, and the storage none of it.
TEST(FirstHour, WhatIsWrittenMayTakeTheTimeToMake) {
  const auto first = [](double main_cpu) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double) { return 0.25; });
    builder.process({7, 1, 0, 60, main_cpu, true, {cell(Metric::kWriteBytes, 200'000'000)}}).context(7, 0, 0, 60);
    builder.stacks(7, 0, 60, {"report (/u/train.py:4)"});
    return explain(builder.build()).findings.front();
  };
  EXPECT_THAT(first(0.9).title, HasSubstr("while the main thread makes what the job writes to storage: report"));
  EXPECT_THAT(first(0.05).title, HasSubstr("while the job writes to storage: report"));
}

TEST(FirstHour, AReadingBeforeAShortJobBeganIsNotItsMemory) {
  RecordingBuilder builder(1);
  builder
      .gpu(
          0, [](double) { return 0.3; }, 0)
      .process(7, 1, 0, 1, 0.1);
  const Explanation e = explain(builder.build());
  for (const Finding& finding : e.findings) EXPECT_THAT(finding.evidence, Not(Contains(HasSubstr("larger batch"))));
  EXPECT_EQ(check(e, "memory").good, Answer::kUnknown);
}

// Two processes with a GPU each, and in each second the first waits for `first` of it, the second for `second`.
Finding exchange(const Frames& waits, double first, double second, bool second_is_read = true) {
  RecordingBuilder builder(60);
  builder.gpu(0, [&](double) { return 1 - first; }).gpu(1, [&](double) { return 1 - second; });
  builder.process(7, 1, 0, 60, 0.02).process(8, 1, 0, 60, 0.02).context(7, 0, 0, 60).context(8, 1, 0, 60);
  for (int i = 0; i < 60; ++i) {
    builder.stacks(7, i, i + 1 - first, kKernels).stacks(7, i + 1 - first, i + 1, waits);
    if (second_is_read) builder.stacks(8, i, i + second, waits).stacks(8, i + second, i + 1, kKernels);
  }
  return explain(builder.build()).findings.front();
}

TEST(FirstHour, OfTwoThatTakeTurnsNoneIsSaidToTakeLonger) {
  const Finding finding = exchange(kReceivesAtOnce, 0.5, 0.5);
  EXPECT_THAT(finding.advice, AllOf(Not(HasSubstr("takes longer")), HasSubstr("wait for one another")));
}

TEST(FirstHour, WhoComesLastToAnExchangeIsNamed) {
  const Finding finding = exchange(kReducesAtOnce, 0.7, 0.1);
  EXPECT_EQ(finding.cause, Cause::kStraggler);
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("GPU 1 waited for others")));
}

TEST(FirstHour, WhoseStacksNobodyReadIsNotSaidToComeLast) {
  const Finding finding = exchange(kReducesAtOnce, 0.7, 0.1, false);
  EXPECT_THAT(finding.candidates, UnorderedElementsAre(Cause::kExposedCommunication, Cause::kStraggler));
  EXPECT_THAT(finding.title, Not(HasSubstr("GPU 1")));
  EXPECT_TRUE(finding.limits.empty());
  EXPECT_THAT(finding.evidence, AllOf(Contains(HasSubstr("on GPU 1 waited, too, is not known")),
                                      Not(Contains(HasSubstr("waited for others")))));
}

TEST(FirstHour, ProgramsOneAfterTheOtherAreNotOneProcess) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double t) { return std::fmod(t - 0.001, 20) < 10 ? 1.0 : 0.0; });
  builder.process(7, 1, 0, 60, 0.01).context(7, 0, 0, 60);
  for (int i = 0; i < 3; ++i) {
    builder.process(20 + i, 7, i * 20 + 10, i * 20 + 20, 0.9);
    builder.stacks(7, i * 20, i * 20 + 10, kKernels);
    builder.stacks(7, i * 20 + 10, i * 20 + 20,
                   {"main (/u/train.py:1)", "score (/u/train.py:9)", "run (/usr/lib/python3.11/subprocess.py:506)",
                    "Popen.wait (/usr/lib/python3.11/subprocess.py:1)"});
  }
  const Finding first = explain(builder.build()).findings.front();
  EXPECT_THAT(first.title, HasSubstr("programs that it started"));
  EXPECT_THAT(first.evidence, Contains(HasSubstr("processes that it started used")));
}

TEST(FirstHour, AContextThatNoLookShowedIsNotSaidToBeHeld) {
  RecordingBuilder builder(20);
  builder.gpu(0, [](double t) { return t > 10 ? 0.9 : 0.0; }).process(7, 1, 0, 20, 0.9).context(7, 0, 5, 20);
  ExplainOptions options;
  options.window = std::pair(Nanos{0}, 3 * kSecond);
  EXPECT_THAT(check(explain(builder.build(), options), "runs_on_gpu").evidence,
              Not(HasSubstr("it held a context and")));
}

TEST(FirstHour, OfAWholeBoxNothingIsSaidOfAJob) {
  RecordingBuilder builder(20);
  builder.gpu(0, [](double) { return 0.5; }).gpu(1, [](double) { return 0.0; });
  const Explanation e = explain(builder.process({7, 1, 0, 20, 0.5, false}).context(7, 0, 0, 20).build());
  for (const Finding& finding : e.findings)
    for (const std::string& line : finding.evidence)
      EXPECT_THAT(line, AllOf(Not(HasSubstr("of the job")), Not(HasSubstr("when the job started"))));
}

// Two programs with a GPU, a step without one between; each end is found up to a second late.
TEST(FirstHour, TheBoundOfAStepWithoutAGpuHoldsItsUncertainBegin) {
  RecordingBuilder builder(30);
  builder.gpu(0, [](double t) { return t <= 10 || t > 20 ? 1.0 : 0.0; }).process(5, 1, 0, 30, 0.01);
  builder.process(7, 5, 0, 12, 0.5).context(7, 0, 0, 12).process(8, 5, 20, 30, 0.5).context(8, 0, 20, 30);
  const Explanation e = explain(builder.build());
  const auto away = std::find_if(e.findings.begin(), e.findings.end(), [](const Finding& finding) {
    return finding.title.find("none of its processes") != std::string::npos;
  });
  ASSERT_NE(away, e.findings.end());
  ASSERT_TRUE(away->gain);
  EXPECT_GE(away->gain->high, 1.49);
}

TEST(FirstHour, AWindowWithoutAProcessOnTheGpuHasAFinding) {
  RecordingBuilder builder(30);
  builder.gpu(0, [](double t) { return t <= 10 || t > 20 ? 1.0 : 0.0; }).process(5, 1, 0, 30, 0.01);
  builder.process(7, 5, 0, 10, 0.5).context(7, 0, 0, 10).process(8, 5, 20, 30, 0.5).context(8, 0, 20, 30);
  ExplainOptions options;
  options.window = std::pair(12 * kSecond, 18 * kSecond);
  EXPECT_THAT(explain(builder.build(), options).findings, Not(IsEmpty()));
}

// `decode | train`: the decoder is neither on the GPU nor below who is.
TEST(FirstHour, TheOtherEndOfAPipeIsNamed) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.2; }).sleeping_in(WaitChannel::kPipe).process(7, 1, 0, 60, 0.01);
  builder.context(7, 0, 0, 60).process(8, 1, 0, 60, 0.9).stacks(7, 0, 60, {"read (/u/train.py:4)"});
  const Finding first = explain(builder.build()).findings.front();
  EXPECT_THAT(first.evidence, Contains(HasSubstr("process 8 of the job")));
  EXPECT_THAT(first.candidates, Contains(Cause::kInputTooFewWorkers));
}

TEST(FirstHour, NoTwoFindingsSayTheSame) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double t) { return std::fmod(t - 0.001, 20) < 10 ? 0.6 : 0.0; });
  builder.sleeping_in(WaitChannel::kFutex, 0.9).process(7, 1, 0, 60, 0.01).context(7, 0, 0, 60);
  const Explanation e = explain(builder.stacks(7, 0, 60, {"fit (/u/train.py:4)"}).build());
  std::set<std::string> titles;
  for (const Finding& finding : e.findings) EXPECT_TRUE(titles.insert(finding.title).second) << finding.title;
}

TEST(FirstHour, AJobThatEndsBeforeItsProcessIsLookedAtIsAJob) {
  RecordingBuilder builder(4);
  builder.gpu(0, [](double) { return 0.0; });
  builder.meta().exit_code = 0;
  Recording cut = builder.build();
  const Explanation e = explain(cut);
  EXPECT_EQ(e.ledger.total(Account::kNoTask), 0) << "a word of batches";
  EXPECT_EQ(e.ledger.total(Account::kNotUsed), e.ledger.span());
  for (std::size_t i = 0; i < cut.sources.size(); ++i)
    if (Track& track = cut.tracks[i]; cut.sources[i].kind == SourceKind::kGpu) {
      track.at.resize(1);
      for (Column& column : track.columns) column.values.resize(1);
    }
  EXPECT_THAT(explain(cut).headline, ::testing::StartsWith("No kernel was seen in 4.0 s; for "));
}

}  // namespace
}  // namespace headroom
