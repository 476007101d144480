// SPDX-License-Identifier: Apache-2.0
// What a finding says is gained "at most" takes all time with it that may have the same cause.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "analyze/testing.h"
#include "diagnose/explain.h"
#include "diagnose/testing.h"
#include "diagnose/words.h"
#include "model/named_causes.h"

namespace headroom {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RecordingBuilder;

const Frames kLoads{"train (/u/train.py:1)",
                    "_MultiProcessingDataLoaderIter._next_data (/x/site-packages/torch/utils/data/dataloader.py:1)"};

const Finding* titled(const Explanation& e, std::string_view words) {
  for (const Finding& finding : e.findings)
    if (finding.title.find(words) != std::string::npos) return &finding;
  return nullptr;
}

// A log of a GPU and nothing else: phases of 20 s at `busy`, and of 10 s without a kernel.
Recording epochs(double busy, int gpus = 1) {
  RecordingBuilder builder(120);
  for (int gpu = 0; gpu < gpus; ++gpu)
    builder.gpu(gpu, [=](double t) { return std::fmod(t - 0.001, 30) < 20 ? busy : 0.0; });
  Recording recording = builder.build();
  recording.meta.origin = "import:dmon";
  recording.meta.tiers = "N";
  for (Track& track : recording.tracks)  // a log of that kind lists no processes
    std::erase_if(track.columns, [](const Column& column) { return column.metric == Metric::kComputeProcesses; });
  return recording;
}

TEST(Bounds, ReadingsAloneLeaveAllIdleTimeToEachCause) {
  const Explanation e = explain(epochs(0.9));
  const Finding *phases = titled(e, "idles in phases"), *rest = titled(e, "cannot be told");
  ASSERT_TRUE(phases && phases->gain && rest && rest->gain) << (e.findings.empty() ? e.headline : e.findings[0].title);
  EXPECT_GT(phases->gain->high, 120 / 72.0 - 0.01) << "72 s of kernels, less the error of readings";
  EXPECT_DOUBLE_EQ(phases->gain->high, rest->gain->high);
  EXPECT_THAT(phases->bound, HasSubstr("all other idle time that nothing explains"));
  const Explanation full = explain(epochs(1));
  EXPECT_THAT(titled(full, "idles in phases")->bound, Not(HasSubstr("other idle time"))) << "there is none";
}

TEST(Bounds, OfSeveralGpusThatIdleAlikeTheJoinedFindingKeepsIt) {
  const Explanation e = explain(epochs(0.9, 2));
  const Finding* phases = titled(e, "idles in phases");
  ASSERT_TRUE(phases && phases->gain);
  EXPECT_THAT(phases->title, HasSubstr("Each of GPUs 0 and 1"));
  EXPECT_GT(phases->gain->high, 120 / 72.0 - 0.01);
}

TEST(Bounds, WhatFollowsTheLastKernelMayBeTheLastPause) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double t) { return std::fmod(t - 0.001, 20) < 10 ? 1.0 : 0.0; });
  builder.process(100, 1, 0, 60, 0.9).context(100, 0, 0, 60);
  const Explanation e = explain(builder.build());
  EXPECT_NEAR(seconds(e.ledger.total(Account::kTeardown)), 10, 1.1);
  const Finding* pauses = find(e, Cause::kEpochEndHostWork);
  ASSERT_TRUE(pauses && pauses->gain) << e.headline;
  EXPECT_GT(pauses->gain->high, 1.95) << "60 s to 30 s; without the last pause 40 s were left";
}

// Two pauses for the loader, as stacks tell: in one of them a worker is replaced.
TEST(Bounds, WaitsForTheLoaderMayHaveOneCauseWhateverStacksTell) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double t) { return (t > 40 && t <= 60) || (t > 70 && t <= 90) ? 0.0 : 1.0; });
  builder.process(100, 1, 0, 100, 0.02).context(100, 0, 0, 100);
  builder.process(101, 100, 0, 42, 0.5).process(102, 100, 42.5, 100, 0.5);
  builder.stacks(100, 0, 100, kLoads);
  const Explanation e = explain(builder.build());
  const Finding* restart = find(e, Cause::kEpochWorkerRestart);
  ASSERT_TRUE(restart && restart->gain) << e.headline;
  EXPECT_NEAR(seconds(restart->cost()), 20, 2);
  EXPECT_NEAR(restart->gain->high, 100.0 / 60, 0.1);
  EXPECT_THAT(restart->bound, HasSubstr("that may have the same cause"));
}

// The first batch takes 20 s; later ones half of each second.
TEST(Bounds, OfOtherTimeItIsSaidWhatLiesBeforeTheFirstKernel) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double t) { return t <= 20 ? 0.0 : 0.5; });
  builder.process(100, 1, 0, 60, 0.02).context(100, 0, 0, 60).process(101, 100, 0, 60, 0.9);
  builder.stacks(100, 0, 20, kLoads);
  for (int i = 20; i < 60; ++i) builder.stacks(100, i, i + 0.5, kKernels).stacks(100, i + 0.5, i + 1, kLoads);
  const Explanation e = explain(builder.build());
  const auto loads = std::find_if(e.findings.begin(), e.findings.end(),
                                  [](const Finding& finding) { return names(finding, Cause::kInputTooFewWorkers); });
  ASSERT_NE(loads, e.findings.end()) << e.headline;
  EXPECT_THAT(loads->bound, AllOf(HasSubstr("s before the first kernel"), HasSubstr("that may have the same cause")));
}

// Kernels for half of the time, and for the last 10 s none.
TEST(Bounds, CodeThatGoesOnAfterTheLastKernelIsMoreOfTheSame) {
  const auto gain = [](const char* last) {
    RecordingBuilder builder(60, 0.2);
    builder.gpu(0, [](double t) { return t <= 50 ? 0.5 : 0.0; });
    builder.process(100, 1, 0, 60, 0.6).context(100, 0, 0, 60);
    builder.stacks(100, 0, 50, {"train (/u/train.py:1)", "burn (/u/train.py:9)"}).stacks(100, 50, 60, {last});
    const Explanation e = explain(builder.build());
    const Finding* code = titled(e, "burn (train.py)");
    return code && code->gain ? code->gain->high : 0;
  };
  EXPECT_NEAR(gain("burn (/u/train.py:9)"), 60.0 / 25, 0.1);
  EXPECT_NEAR(gain("upload (/u/train.py:19)"), 60.0 / 35, 0.1) << "other code";
}

// 2 s of each 10 s without a kernel, and the first fifth of each other second: code that is sure to run, and the same.
TEST(Bounds, TheSameCodeBetweenStepsAndInPausesIsOneFinding) {
  RecordingBuilder builder(60, 0.2);
  const auto idle = [](double t) { return std::fmod(t - 0.001, 10) > 8 || std::fmod(t - 0.001, 1) < 0.2; };
  builder.gpu(0, [=](double t) { return idle(t) ? 0.0 : 1.0; });
  builder.process(100, 1, 0, 60, 1.0).context(100, 0, 0, 60);
  for (int i = 0; i < 300; ++i)
    if (idle(0.2 * i + 0.1)) builder.stacks(100, 0.2 * i, 0.2 * i + 0.2, {"burn (/u/train.py:9)"});
  const Explanation e = explain(builder.build());
  const Finding* code = titled(e, "burn (train.py)");
  ASSERT_TRUE(code && code->gain) << e.headline;
  EXPECT_EQ(titled(e, "pauses for code"), nullptr);
  EXPECT_NEAR(seconds(code->cost()), 21.6, 3);
  EXPECT_GT(code->gain->high, 60 / 39.0) << "60 s to 38.4 s; without the pauses alone to 48 s";
}

// Pauses of 10 s: 7 s in a function of the job, and 3 s in torch.save.
TEST(Bounds, CodeBeforeACheckpointMayBeAPartOfIt) {
  RecordingBuilder builder(80);
  builder.gpu(0, [](double t) { return std::fmod(t - 0.001, 20) < 10 ? 1.0 : 0.0; });
  builder.process(100, 1, 0, 80, 0.95).context(100, 0, 0, 80);
  for (int i = 0; i < 4; ++i)
    builder.stacks(100, 20 * i, 20 * i + 17, {"train (/u/train.py:1)", "pack (/u/train.py:9)"})
        .stacks(100, 20 * i + 17, 20 * i + 20,
                {"train (/u/train.py:1)", "save (/x/site-packages/torch/serialization.py:1)"});
  const Explanation e = explain(builder.build());
  EXPECT_GT(seconds(e.ledger.total(Account::kCheckpoint)), 8);
  const Finding* code = titled(e, "pack (train.py)");
  ASSERT_TRUE(code && code->gain) << e.headline;
  EXPECT_TRUE(names(*code, Cause::kCheckpointSync));
  EXPECT_GT(code->gain->high, 1.99) << "80 s to 40 s; without the 12 s in torch.save 52 s were left";
}

// Five processes in turn, of which each starts for 8 s, and has no kernel for 2 s later: that may be one more start.
TEST(Bounds, BesideStartsThatWereSeenMayBeOthers) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double t) {
    const double at = std::fmod(t - 0.001, 20);
    return at < 8 || (at > 13 && at < 15) ? 0.0 : 1.0;
  });
  for (int i = 0; i < 5; ++i)
    builder.process(100 + i, 1, 20 * i, 20 * i + 20, 0.05).context(100 + i, 0, 20 * i + 2, 20 * i + 20);
  const Explanation e = explain(builder.build());
  EXPECT_NEAR(seconds(e.ledger.total(Account::kUnexplained)), 10, 2);
  const Finding* churn = find(e, Cause::kTrialChurn);
  ASSERT_TRUE(churn && churn->gain) << e.headline;
  EXPECT_GT(churn->gain->high, 1.99) << "100 s to 50 s; by the starts that were seen alone 60 s were left";
  EXPECT_THAT(churn->bound, HasSubstr("that may have the same cause"));
}

// The job's marks say when it validates; the rest of its loop, in the same function, has no name.
TEST(Bounds, WhoMarksItsValidationHasNoneElsewhere) {
  const auto gain = [](const std::string& via) {
    RecordingBuilder builder(120);
    builder.gpu(0, [](double t) { return std::fmod(t - 0.001, 40) < 30 ? 0.7 : 0.0; });
    builder.process(100, 1, 0, 120, 0.02).context(100, 0, 0, 120).stacks(100, 0, 120, {"<module> (/u/train.py:1)"});
    std::vector<std::pair<double, std::string>> phases;
    for (int i = 0; i < 3; ++i) phases.insert(phases.end(), {{i * 40 + 30, "validate"}, {i * 40 + 39.9, ""}});
    const Explanation e = explain(builder.marks(100, via, phases).build());
    const Finding* validation = find(e, Cause::kValidation);
    return validation && validation->gain ? validation->gain->high : 0;
  };
  EXPECT_NEAR(gain("marks"), 120.0 / 90, 0.05);
  EXPECT_GT(gain("output"), 1.5) << "lines may come late";
}

// Kernels for 0.7 of each second; some looks have it waiting for them all the time.
TEST(Bounds, WhereWaitingForKernelsEndedIsNotKnownToTheMoment) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.7; });
  builder.process(100, 1, 0, 60, 0.02).context(100, 0, 0, 60).process(101, 100, 0, 60, 0.2);
  for (int i = 0; i < 60; ++i) {
    builder.stacks(100, i, i + (i < 40 ? 0.7 : 1), {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
    if (i < 40) builder.stacks(100, i + 0.7, i + 1, kLoads);
  }
  const Explanation e = explain(builder.build());
  EXPECT_NEAR(seconds(e.ledger.total(Account::kSync)), 6, 1);
  const Finding* input = titled(e, "worker processes");
  ASSERT_TRUE(input && input->gain) << e.headline;
  EXPECT_NEAR(seconds(input->cost()), 12, 1);
  EXPECT_GT(input->gain->high, 1.40) << "18 s of 60 s may be it";
}

TEST(Bounds, WorkOfOneProcessThatIsSpreadEvenlyTakesTheMeanOfItsGpus) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double) { return 0.8; }).gpu(1, [](double) { return 0.2; });
  builder.process(100, 1, 0, 100, 0.5).context(100, 0, 0, 100).context(100, 1, 0, 100);
  const Explanation e = explain(builder.build());
  const Finding* uneven = find(e, Cause::kOneProcessImbalance);
  ASSERT_TRUE(uneven && uneven->gain);
  EXPECT_NEAR(uneven->gain->high, 0.8 / 0.5, 0.01);
  ASSERT_TRUE(e.bound);
  EXPECT_LT(e.bound->speedup_high, uneven->gain->high) << "that one leaves the kernels where they are";
}

// A second of two processes, of which 8 is late at every exchange by what it does itself, and 7 waits for it: which two
// stacks each of them is seen at, half a second each.
Explanation of_a_late_rank(const std::array<Frames, 2>& of_7, const std::array<Frames, 2>& of_8,
                           bool numbered = false) {
  RecordingBuilder builder(60);
  for (const int gpu : {0, 1}) builder.gpu(gpu, [](double) { return 0.5; });
  builder.process(7, 1, 0, 60, 0.02).process(8, 1, 0, 60, 0.1).context(7, 0, 0, 60).context(8, 1, 0, 60);
  if (numbered) builder.rank(7, 0).rank(8, 1);
  for (int i = 0; i < 60; ++i) {
    builder.stacks(7, i, i + 0.5, of_7[0]).stacks(7, i + 0.5, i + 1, of_7[1]);
    builder.stacks(8, i, i + 0.5, of_8[0]).stacks(8, i + 0.5, i + 1, of_8[1]);
  }
  return explain(builder.build());
}
const Frames kOwn{"train (/u/train.py:1)", "sort (/u/train.py:20)"};
const Frames kExchange{"train (/u/train.py:1)",
                       "all_reduce (/x/site-packages/torch/distributed/distributed_c10d.py:1)"};

TEST(LateRank, BothHalvesOfItAreOneFinding) {
  const Explanation e = of_a_late_rank({kKernels, kExchange}, {kKernels, kOwn});
  ASSERT_FALSE(e.findings.empty());
  const Finding& first = e.findings.front();
  EXPECT_EQ(first.title, "The GPUs wait for the process on GPU 1: sort (train.py)") << "not where the other waits";
  EXPECT_EQ(first.cause, Cause::kStraggler);
  EXPECT_NEAR(seconds(first.cost()), 60, 4) << "30 s of each";
  for (std::size_t i = 1; i < e.findings.size(); ++i) EXPECT_TRUE(e.findings[i].claims.empty()) << e.findings[i].title;
}

TEST(LateRank, HasItsNumberWhereTheLauncherGaveIt) {
  const Explanation e = of_a_late_rank({kKernels, kExchange}, {kKernels, kOwn}, true);
  ASSERT_FALSE(e.findings.empty());
  EXPECT_EQ(e.findings.front().title, "The GPUs wait for rank 1 (process 8, GPU 1): sort (train.py)");
}

// Looks at two processes lie further apart than short steps: which of the other's looks goes with a wait is chance.
TEST(LateRank, IsNotSaidToBeAtKernelsWhileItsGpuHasNone) {
  const Explanation e = of_a_late_rank({kKernels, kExchange}, {kOwn, kKernels});
  ASSERT_FALSE(e.findings.empty());
  const Finding& first = e.findings.front();
  EXPECT_EQ(first.title, "The GPUs wait for the process on GPU 1: sort (train.py)");
  EXPECT_THAT(first.evidence, Contains(HasSubstr("process 8 (GPU 1) was at work")));
  EXPECT_THAT(first.evidence, Not(Contains(HasSubstr("its own kernels"))));
  EXPECT_THAT(first.advice, HasSubstr("what its code does before its kernels"));
}

// A parent of 10 s that starts two processes with a GPU each; perhaps another one that ends before.
Explanation started_by_a_parent(std::optional<double> step_until) {
  RecordingBuilder builder(60, 0.5);
  for (const int gpu : {0, 1}) builder.gpu(gpu, [](double t) { return t > 10.5 ? 1.0 : 0.0; });
  builder.process(90, 1, 0, 60, 0.3);
  if (step_until) builder.process(91, 90, 1, *step_until, 0.9);
  builder.process(92, 90, 10, 60, 0.9).process(93, 90, 10, 60, 0.9).context(92, 0, 10.5, 60).context(93, 1, 10.5, 60);
  return explain(builder.build());
}

TEST(Starts, TheStartOfWhatStartsTheRanksIsStartUp) {
  const Explanation e = started_by_a_parent({});
  const Finding* start = find(e, Cause::kStartupLoad);
  ASSERT_NE(start, nullptr) << e.headline;
  EXPECT_NEAR(seconds(start->cost()), 20, 1.5);
  EXPECT_THAT(start->evidence, Contains(HasSubstr("no process that used a GPU later had been started yet")));
  EXPECT_EQ(titled(e, "none of its processes was on the GPU"), nullptr);
}

TEST(Starts, AStepOfAScriptBeforeThemIsNot) {
  // Its end is seen up to an interval late, when the next one runs already.
  for (const double until : {8.0, 10.3}) {
    const Explanation e = started_by_a_parent(until);
    const Finding* step = titled(e, "none of its processes was on the GPU");
    ASSERT_NE(step, nullptr) << e.headline;
    EXPECT_THAT(step->evidence, Contains(HasSubstr("process 91 (python3)")));
    EXPECT_THAT(step->advice, HasSubstr("before a GPU is asked for"));
  }
  EXPECT_EQ(titled(started_by_a_parent(30), "none of its processes was on the GPU"), nullptr) << "beside the training";
}

// 3 s of start-up and 3 s between kernels later, in a job of one or two processes on the GPU.
Explanation nearly_well(int processes) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double t) { return t <= 3 || (t > 60 && t <= 63) ? 0.0 : 1.0; });
  const double change = processes == 2 ? 50 : 100;
  builder.process(100, 1, 0, change, 0.1).context(100, 0, 0, change);
  if (processes == 2) builder.process(101, 1, change, 100, 0.1).context(101, 0, change, 100);
  return explain(builder.build());
}

TEST(Healthy, IsNotSaidWhereStartsMayCostWhatIsMaterial) {
  const Explanation one = nearly_well(1);
  EXPECT_NE(find(one, Cause::kHealthy), nullptr) << one.headline << (one.findings.empty() ? "" : one.findings[0].title);
  EXPECT_EQ(find(nearly_well(2), Cause::kHealthy), nullptr) << "whose start the later 3 s are is not known";
}

TEST(Words, CoresOfTheJobAndOfTheMachineAreToldApart) {
  HostSummary s;
  s.usable_cores = 1;
  s.machine_cores = 2;
  s.busy_cores = 2;
  s.helper_cpu = 0.2;
  EXPECT_THAT(diagnose::cores_sentence(s),
              Contains("of its 2 cores the machine used 2.0; the job may use 1, these processes used 0.2"));
  s.machine_cores = 1;
  s.busy_cores = 1;
  EXPECT_THAT(diagnose::cores_sentence(s), Contains("of 1 usable cores the machine used 1.0, these processes 0.2"));
}

}  // namespace
}  // namespace headroom
