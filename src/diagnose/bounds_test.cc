// SPDX-License-Identifier: Apache-2.0
// What a finding says is gained "at most" takes all time with it that may have the same cause.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analyze/testing.h"
#include "diagnose/explain.h"
#include "diagnose/words.h"

namespace headroom {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RecordingBuilder;
using Frames = std::vector<std::string>;

const Frames kLoads{"train (/u/train.py:1)",
                    "_MultiProcessingDataLoaderIter._next_data (/x/site-packages/torch/utils/data/dataloader.py:1)"};

const Finding* find(const Explanation& e, Cause cause) {
  for (const Finding& finding : e.findings)
    if (finding.cause == cause || std::count(finding.candidates.begin(), finding.candidates.end(), cause) > 0)
      return &finding;
  return nullptr;
}

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

// Process 8 is late at every exchange by what it does itself; process 7 waits for it.
TEST(LateRank, BothHalvesOfItAreOneFinding) {
  const Frames kernels{"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"},
      own{"train (/u/train.py:1)", "sort (/u/train.py:20)"},
      exchange{"train (/u/train.py:1)", "all_reduce (/x/site-packages/torch/distributed/distributed_c10d.py:1)"};
  RecordingBuilder builder(60);
  for (const int gpu : {0, 1}) builder.gpu(gpu, [](double) { return 0.5; });
  builder.process(7, 1, 0, 60, 0.02).process(8, 1, 0, 60, 0.1).context(7, 0, 0, 60).context(8, 1, 0, 60);
  for (int i = 0; i < 60; ++i) {
    builder.stacks(7, i, i + 0.5, kernels).stacks(7, i + 0.5, i + 1, exchange);
    builder.stacks(8, i, i + 0.5, kernels).stacks(8, i + 0.5, i + 1, own);
  }
  const Explanation e = explain(builder.build());
  ASSERT_FALSE(e.findings.empty());
  const Finding& first = e.findings.front();
  EXPECT_EQ(first.title, "The GPUs wait for the process on GPU 1: sort (train.py)") << "not where the other waits";
  EXPECT_THAT(first.candidates, Contains(Cause::kStraggler));
  EXPECT_NEAR(seconds(first.cost()), 60, 4) << "30 s of each";
  for (std::size_t i = 1; i < e.findings.size(); ++i) EXPECT_TRUE(e.findings[i].claims.empty()) << e.findings[i].title;
}

// A parent of 10 s that starts two processes with a GPU each; perhaps another one that ends before.
Explanation started_by_a_parent(bool with_a_step) {
  RecordingBuilder builder(60, 0.5);
  for (const int gpu : {0, 1}) builder.gpu(gpu, [](double t) { return t > 10.5 ? 1.0 : 0.0; });
  builder.process(90, 1, 0, 60, 0.3);
  if (with_a_step) builder.process(91, 90, 1, 8, 0.1);
  builder.process(92, 90, 10, 60, 0.9).process(93, 90, 10, 60, 0.9).context(92, 0, 10.5, 60).context(93, 1, 10.5, 60);
  return explain(builder.build());
}

TEST(Starts, TheStartOfWhatStartsTheRanksIsStartUp) {
  const Explanation e = started_by_a_parent(false);
  const Finding* start = find(e, Cause::kStartupLoad);
  ASSERT_NE(start, nullptr) << e.headline;
  EXPECT_NEAR(seconds(start->cost()), 20, 1.5);
  EXPECT_THAT(start->evidence, Contains(HasSubstr("no process of the job was on the GPU yet")));
  EXPECT_EQ(titled(e, "none of its processes was on the GPU"), nullptr);
}

TEST(Starts, AStepOfAScriptBeforeThemIsNot) {
  const Explanation e = started_by_a_parent(true);
  EXPECT_NE(titled(e, "none of its processes was on the GPU"), nullptr) << e.headline;
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
