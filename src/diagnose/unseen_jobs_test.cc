// SPDX-License-Identifier: Apache-2.0
// Sentences that were false of programs that nobody had seen before.
#include <gmock/gmock.h>

#include "analyze/testing.h"
#include "diagnose/explain.h"

namespace headroom {
namespace {

using testing::cell;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RecordingBuilder;

const std::string kTrains = "train (/u/train.py:1)";
const std::string kOfPackages = "/usr/lib/python3/dist-packages/";

// From the 10th second on a step a second: 0.7 s of kernels, then 0.3 s in other code.
struct UnseenJob {
  std::vector<std::string> start{kTrains, "prepare (/u/train.py:3)"};
  std::vector<std::string> code{kTrains, "mix (/u/train.py:9)"};
  double cpu = 0.2, delay = 0;  // of a core
  std::int64_t writes = 0;      // bytes per second
};
Recording unseen(const UnseenJob& job) {
  RecordingBuilder builder(70);
  builder.gpu(0, [](double t) { return t <= 10 ? 0.0 : 0.7; });
  builder.process(
      {7,
       1,
       0,
       70,
       job.cpu,
       true,
       {cell(Metric::kRunDelay, static_cast<std::int64_t>(job.delay * 1e9)), cell(Metric::kWriteBytes, job.writes)}});
  builder.context(7, 0, 1, 70).stacks(7, 0, 10, job.start);
  for (int i = 10; i < 70; ++i) {
    builder.stacks(7, i, i + 0.7, {kTrains, "_wait (/x/headroom_sim.py:1)"});
    builder.stacks(7, i + 0.7, i + 1, job.code);
  }
  return builder.build();
}
const Finding& about(const Explanation& e, std::string_view what) {
  const auto found = std::find_if(e.findings.begin(), e.findings.end(),
                                  [&](const Finding& f) { return f.title.find(what) != std::string::npos; });
  EXPECT_NE(found, e.findings.end()) << what << ": " << e.findings.front().title;
  return found == e.findings.end() ? e.findings.front() : *found;
}

TEST(UnseenJobs, AnOptimizerBesideWhichNoKernelRunsMayComputeOnTheCpu) {
  const Explanation e = explain(
      unseen({.code = {kTrains, "update (/u/train.py:5)", "Adam.step (" + kOfPackages + "torch/optim/adam.py:1)"},
              .cpu = 0.45}));
  const Finding& step = about(e, "computes on the CPU, or launches short kernels one by one");
  EXPECT_THAT(step.candidates, AllOf(Contains(Cause::kHostGraphBuilding), Contains(Cause::kLaunchBound)));
  EXPECT_THAT(step.evidence, Contains("hardly a kernel ran while it was in that code"));
  EXPECT_THAT(step.advice, HasSubstr("see where its data is"));
}

TEST(UnseenJobs, CodeWhoseNameSaysThatItCompilesMayCompile) {
  const Explanation e = explain(unseen({.start = {kTrains, "compile_graph (/u/graph.py:9)"}}));
  const Finding& start = about(e, "Start-up");
  EXPECT_EQ(start.cause, Cause::kCompileWarmup);
  EXPECT_THAT(start.less_likely, ElementsAre(Cause::kStartupLoad)) << "by its name alone";
  EXPECT_THAT(start.told_apart_from, Not(Contains(HasSubstr("compiling"))));
  const Explanation other = explain(unseen({}));
  EXPECT_EQ(about(other, "Start-up").cause, Cause::kStartupLoad);
}

TEST(UnseenJobs, WhatIsCompiledOnceComesWithNoStepAndNoEpoch) {
  RecordingBuilder builder(70);
  builder.gpu(0, [](double t) { return t > 30 && t <= 36 ? 0.0 : 1.0; }).process(7, 1, 0, 70, 0.9);
  builder.context(7, 0, 0, 70);
  builder.stacks(7, 0, 30, {kTrains, "_wait (/x/headroom_sim.py:1)"});
  builder.stacks(7, 30, 36, {kTrains, "compile_graph (/u/graph.py:9)"});
  builder.stacks(7, 36, 70, {kTrains, "_wait (/x/headroom_sim.py:1)"});
  const Explanation e = explain(builder.build());
  const Finding& once = about(e, "compile_graph (graph.py), at one time only");
  ASSERT_FALSE(once.candidates.empty());
  EXPECT_EQ(once.candidates.front(), Cause::kCompileWarmup);
  EXPECT_THAT(once.candidates,
              AllOf(Not(Contains(Cause::kHostGraphBuilding)), Not(Contains(Cause::kDuplicatePreprocessing))));
}

TEST(UnseenJobs, LittleThatIsFlushedIsALog) {
  const UnseenJob flushes{.code = {kTrains, "keep (/u/train.py:9)", "os.fsync() (/u/train.py:12)"},
                          .cpu = 0.1,
                          .delay = 0.35,
                          .writes = 9'000};
  const Finding log = about(explain(unseen(flushes)), "(fsync)");
  EXPECT_EQ(log.cause.value_or(log.candidates.empty() ? Cause::kHang : log.candidates.front()), Cause::kLoggingUpload);
}

// Its workers are at work all the time: what it does in a library meanwhile is no wait for them, where it is seen to
// wait for them elsewhere.
TEST(UnseenJobs, ALibrarysCallIsNoWaitForWorkersWhereThatWaitIsSeen) {
  const auto input = [](bool waits) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double) { return 0.4; }).process(7, 1, 0, 60, 0.05).context(7, 0, 0, 60);
    builder.process(9, 7, 0, 60, 0.9);
    const std::string wait =
        waits ? "_try_get_data (" + kOfPackages + "torch/utils/data/dataloader.py:1)" : "_wait (/x/headroom_sim.py:1)";
    for (int i = 0; i < 60; ++i) {
      builder.stacks(7, i, i + 0.4, {kTrains, "_wait (/x/headroom_sim.py:1)"});
      builder.stacks(7, i + 0.4, i + 0.6, {kTrains, wait});
      builder.stacks(7, i + 0.6, i + 1, {kTrains, "mix (/u/train.py:9)", "sub (/usr/lib/python3.11/re.py:1)"});
    }
    return seconds(explain(builder.build()).ledger.total(Account::kInput));
  };
  EXPECT_NEAR(input(true), 12, 2);
  EXPECT_NEAR(input(false), 24, 2) << "it may wait in that call";
}

TEST(UnseenJobs, AWantOfACoreIsAShareOfTheWholeTime) {
  const Explanation e = explain(unseen({.cpu = 0.03, .delay = 0.13}));
  const auto cores = std::find_if(e.limits.begin(), e.limits.end(),
                                  [](const OwnLimit& one) { return one.cause == Cause::kCpuOversubscribed; });
  ASSERT_NE(cores, e.limits.end()) << e.findings.front().title;
  EXPECT_NEAR(cores->high, 1 / (1 - 0.13 - 0.25 * 0.03 * 60 / 70), 0.01);
  EXPECT_THAT(cores->condition, HasSubstr("and ran on it in a quarter less time, sharing it with nobody"));
}

TEST(UnseenJobs, ALimitNamesTheFindingThatGoesBeyondIt) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.95; }).gpu(1, [](double) { return 0.5; });
  builder.process(7, 1, 0, 60, 0.5).context(7, 0, 0, 60).context(7, 1, 0, 60);
  const Explanation e = explain(builder.build());
  ASSERT_TRUE(e.bound && e.findings.front().gain);
  ASSERT_GT(e.findings.front().gain->high, 1.02 * e.bound->speedup_high);
  EXPECT_THAT(e.bound->condition, HasSubstr("; finding 1 gains more, as it changes that work or where it is"));
}

// Two processes at work in turn: one has a long item, and the other nothing to do.
TEST(UnseenJobs, WorkersThatRestLongerThanTheyWaitForACoreDoNotWaitForCoresAlone) {
  const auto first = [](double cpu) {
    RecordingBuilder builder(60);
    builder.machine(2, 2).gpu(0, [](double) { return 0.3; }).process(7, 1, 0, 60, 0.02).context(7, 0, 0, 60);
    for (const std::int64_t pid : {8, 9}) {
      builder.process({pid, 7, 0, 60, cpu, true, {cell(Metric::kRunDelay, 210'000'000)}});
      builder.waits_for(pid, {WaitKind::kPipe, "python3", {7}});
    }
    return explain(builder.build()).findings.front();
  };
  const Finding rests = first(0.4), works = first(0.75);
  EXPECT_EQ(works.cause, Cause::kCpuOversubscribed) << works.title;
  EXPECT_THAT(rests.candidates, ElementsAre(Cause::kCpuOversubscribed, Cause::kBurstyInput)) << rests.title;
  EXPECT_THAT(rests.evidence, Contains(HasSubstr("each of them had nothing to do, or waited itself")));
}

TEST(UnseenJobs, TheHeadlineOfGpusOfOneProcessThatTakeTurnsBlamesNoCode) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.95; }).gpu(1, [](double) { return 0.4; });
  builder.process(7, 1, 0, 60, 0.02).context(7, 0, 0, 60).context(7, 1, 0, 60);
  for (int i = 0; i < 60; ++i) builder.stacks(7, i, i + 1, {kTrains, "copy (/u/train.py:9)"});
  const Explanation e = explain(builder.build());
  ASSERT_EQ(e.findings.front().cause, Cause::kOneProcessImbalance) << e.findings.front().title;
  EXPECT_THAT(e.headline, HasSubstr("while another GPU of the job was at work"));
}

TEST(UnseenJobs, OfAHealthyGpuThatTwoProcessesHaveAtOnceItIsSaid) {
  const auto evidence = [](double from) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double) { return 1.0; }).process(7, 1, 0, 60, 0.3).process(8, 1, from, 60, 0.3);
    builder.context(7, 0, 0, from).context(8, 0, from, 60);
    if (from < 30) builder.context(7, 0, from, 60);
    const Finding healthy = explain(builder.build()).findings.front();
    EXPECT_EQ(healthy.cause, Cause::kHealthy) << healthy.title;
    return healthy.evidence;
  };
  EXPECT_THAT(evidence(20), Contains(HasSubstr("several processes had GPU 0 at once for 40")));
  EXPECT_THAT(evidence(40), Not(Contains(HasSubstr("at once"))));
}

}  // namespace
}  // namespace headroom
