// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "analyze/testing.h"
#include "diagnose/explain.h"
#include "diagnose/testing.h"

namespace headroom {
namespace {

using testing::cell;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RecordingBuilder;
using ::testing::StartsWith;

// Two GPUs, `utilisation` while any task is on them; tasks of `length` seconds one after another on each, for
// `duration` seconds. Tasks wait until `empty`, and are in the function `before` until their first kernel.
Recording pairs(double duration, double length, double utilisation, double empty, double startup = 0,
                const std::string& before = "") {
  RecordingBuilder builder(duration, 0.5);
  const auto util = [=](double t) {
    const double in_task = t - 0.01 - length * std::floor((t - 0.01) / length);
    return in_task < startup ? 0.0 : utilisation;
  };
  builder.gpu(0, util).gpu(1, util);
  builder.queue(0, 9).queue(empty, 0);
  std::int64_t pid = 100;
  for (double at = 0; at + length <= duration + 1e-9; at += length)
    for (int gpu = 0; gpu < 2; ++gpu, ++pid) {
      builder.task({"w" + std::to_string(pid - 100), pid, {gpu}, at, at + length, startup / 2});
      if (!before.empty()) builder.stacks(pid, at, at + startup, {"<module> (/u/win.py:1)", before});
    }
  return builder.build();
}

TEST(BatchRules, AHealthyBatchHasNoFindingButThat) {
  const Explanation e = explain(pairs(60, 10, 0.97, 50));
  ASSERT_EQ(e.findings.size(), 1u) << e.findings[0].title << " / " << e.findings.back().title;
  EXPECT_EQ(e.findings[0].cause, Cause::kHealthy);
  ASSERT_TRUE(e.batch);
  EXPECT_EQ(e.batch->attempts, 12);
  EXPECT_EQ(e.batch->not_succeeded, 0);
  EXPECT_EQ(e.batch->tail_lost, 0);
}

TEST(BatchRules, TasksThatNeverTouchAGpuAreNamedAndPromiseNoGain) {
  const auto told = [](double length) {
    RecordingBuilder builder(length + 0.1);
    builder.gpu(0, [](double) { return 0.0; }).queue(0, 0);
    return explain(builder.process(100, 1, 0, length, 0.9).attempt("cpu", 100, {0}, 0, length).build());
  };
  const Explanation seen = told(12), brief = told(3);
  ASSERT_EQ(seen.findings.size(), 1u);
  EXPECT_EQ(seen.findings[0].cause, Cause::kJobNeverUsesGpu);
  ASSERT_EQ(brief.findings.size(), 1u);
  EXPECT_EQ(brief.findings[0].title, "No task was seen on the GPU: too short, or they do not use it");
  EXPECT_FALSE(brief.findings[0].gain);
}

TEST(BatchRules, TheHeadlineSaysThatKernelsRanWhoseWorkCountsForNothing) {
  const auto headline = [](const std::string& outcome, const std::string& stop_reason) {
    RecordingBuilder builder(20);
    builder.gpu(0, [](double t) { return t <= 10 ? 0.8 : 0.0; }).queue(0, 0).task({"a", 100, {0}, 0, 20, 0, outcome});
    builder.meta().stop_reason = stop_reason;
    return explain(builder.build()).headline;
  };
  EXPECT_THAT(headline("interrupted", "job_ended"), HasSubstr("computed for 40 % of 20.0 s, all for work that was"));
  EXPECT_THAT(headline("", ""), HasSubstr("computed for 40 % of 20.0 s, all for tasks that are still under way;"));
  EXPECT_THAT(headline("", "disk_full"), HasSubstr("all for tasks that were under way when the recording ended"));
  EXPECT_THAT(headline("succeeded", "job_ended"), HasSubstr("computed for 40 % of 20.0 s;"));
}

TEST(BatchRules, NoOrderMakesTheLongestTaskShorterWhateverCameOfIt) {
  RecordingBuilder builder(20);
  builder.gpu(0, [](double) { return 0.9; }).gpu(1, [](double) { return 0.0; }).queue(0, 0);
  const Explanation e = explain(builder.task({"only", 100, {0}, 0, 20, 0, "hung"}).build());
  const Finding* tail = find_single(e, Cause::kTailImbalance);
  ASSERT_TRUE(tail);
  EXPECT_EQ(tail->title, "The only task ran while other GPUs had nothing to do");
  EXPECT_THAT(tail->bound, HasSubstr("none by order alone: the longest task took 20.0 s"));
  EXPECT_THAT(tail->advice, Not(HasSubstr("longest")));
}

// Stacks and events of a live recording are later than its last reading of a GPU.
TEST(BatchRules, ATailThatGoesOnIsToldWhateverWasWrittenLast) {
  RecordingBuilder builder(20);
  builder.gpu(0, [](double) { return 0.9; }).gpu(1, [](double) { return 0.0; }).queue(0, 0);
  builder.task({"only", 100, {0}, 0, 20, 0, ""}).meta().stop_reason = "";
  Recording recording = builder.build();
  recording.meta.end += kSecond / 3;
  EXPECT_TRUE(find_single(explain(recording), Cause::kTailImbalance));
}

TEST(BatchRules, WhereAllWorkWasThrownAwayNoFactorIsNamed) {
  RecordingBuilder builder(20);
  builder.gpu(0, [](double) { return 0.9; }).queue(0, 0);
  const Explanation e = explain(builder.task({"a", 100, {0}, 0, 20, 0, "failed"}).build());
  const Finding* lost = find_single(e, Cause::kWastedTrials);
  ASSERT_TRUE(lost);
  EXPECT_FALSE(lost->gain);
  EXPECT_THAT(lost->bound, HasSubstr("none at equal work"));
}

TEST(BatchRules, ATaskThatCouldNotBeStartedIsOneThatDidNotSucceed) {
  RecordingBuilder builder(20);
  builder.gpu(0, [](double) { return 0.9; }).queue(0, 0).task("good", 100, {0}, 0, 20);
  events::AttemptEnd refused{.start = {.task = "bad", .group = "g", .attempt = 9}};
  refused.outcome = AttemptOutcome::kNotStarted;
  refused.proof = PlacementProof::kUnseen;
  builder.sink().add_event(to_event(refused, RecordingBuilder::at(1)));
  for (const HealthCheck& check : explain(builder.build()).health)
    if (check.check == "ended_well") {
      EXPECT_EQ(check.good, Answer::kNo);
      EXPECT_EQ(check.evidence, "1 of 2 tasks that ended did not succeed");
    }
}

TEST(BatchRules, TheHeadlineIsTheBatchs) {
  const Explanation e = explain(pairs(60, 10, 0.97, 50));
  EXPECT_THAT(e.headline, HasSubstr("The 2 GPUs computed for 97 % of 1:00 each"));
  const Explanation slow = explain(pairs(60, 5, 0.97, 50, 1.5));
  EXPECT_THAT(slow.headline, HasSubstr("was start-up of 24 tasks"));
}

TEST(BatchRules, AnUnevenTailNamesTheLastTasksAndItsBound) {
  RecordingBuilder builder(60, 0.5);
  builder.gpu(0, [](double) { return 0.97; }).gpu(1, [](double t) { return t <= 20 ? 0.97 : 0.0; });
  builder.queue(0, 9).queue(10, 0);
  builder.task("a", 100, {0}, 0, 10).task("b", 101, {1}, 0, 10).task("c", 102, {1}, 10, 20);
  builder.task("long", 103, {0}, 10, 60);
  const Explanation e = explain(builder.build());
  const Finding* tail = find_single(e, Cause::kTailImbalance);
  ASSERT_NE(tail, nullptr);
  EXPECT_NEAR(seconds(tail->cost()), 40, 0.6);
  EXPECT_THAT(tail->evidence, Contains(HasSubstr("GPU 1 had no task from")));
  EXPECT_THAT(tail->evidence, Contains(HasSubstr("task long ran for 50.0 s")));
  EXPECT_THAT(tail->bound, HasSubstr("1.20x at most (50.0 s instead of 1:00)"));  // not 40 s: the longest is 50 s
  EXPECT_THAT(tail->bound, HasSubstr("the longest one starts first: it allows no less"));
  ASSERT_TRUE(tail->gain);
  EXPECT_NEAR(tail->gain->high, 1.2, 0.01);
  EXPECT_THAT(tail->advice, HasSubstr("--fresh")) << "what succeeded is not run again";
  ASSERT_TRUE(e.batch);
  EXPECT_NEAR(seconds(e.batch->tail), 40, 0.6);
  EXPECT_EQ(find_single(e, Cause::kTaskWaiting), nullptr);
  EXPECT_EQ(find_single(e, Cause::kWrongGpuAssignment), nullptr);
}

TEST(BatchRules, TheTailBeginsWithTheLastStart) {
  RecordingBuilder builder(60, 0.5);
  builder.gpu(0, [](double) { return 0.97; }).gpu(1, [](double t) { return t <= 20.1 ? 0.97 : 0.0; });
  builder.queue(0, 9).queue(1, 0);
  builder.task("a", 100, {0}, 0, 40).task("b", 101, {1}, 0, 20);
  builder.task("after a", 102, {0}, 40, 60);  // could not start earlier, and did not wait
  const Explanation e = explain(builder.build());
  ASSERT_TRUE(e.batch);
  EXPECT_NEAR(seconds(e.batch->tail), 20, 0.6);
  EXPECT_NEAR(seconds(e.batch->tail_lost), 20, 0.6);
}

TEST(BatchRules, AStoppedBatchHasNoTail) {
  RecordingBuilder builder(60, 0.5);
  builder.gpu(0, [](double) { return 0.97; }).gpu(1, [](double t) { return t <= 20 ? 0.97 : 0.0; });
  builder.queue(0, 9).task("b", 101, {1}, 0, 20).task("long", 103, {0}, 0, 60);
  const Explanation e = explain(builder.build());
  EXPECT_EQ(find_single(e, Cause::kTailImbalance), nullptr);
  EXPECT_NE(find_single(e, Cause::kTaskWaiting), nullptr);
  ASSERT_TRUE(e.batch);
  EXPECT_EQ(e.batch->tail, 0);
}

TEST(BatchRules, AFreeGpuBesideWaitingTasksSaysWhatCameNext) {
  RecordingBuilder builder(60, 0.5);
  builder.gpu(0, [](double) { return 0.97; }).gpu(1, [](double t) { return t > 30.1 ? 0.97 : 0.0; });
  builder.queue(0, 2).queue(30, 0);
  builder.task("single", 100, {0}, 0, 30).task("double", 101, {0, 1}, 30, 60);
  const Explanation e = explain(builder.build());
  const Finding* waited = find_single(e, Cause::kTaskWaiting);
  ASSERT_NE(waited, nullptr);
  EXPECT_NEAR(seconds(waited->cost()), 30, 0.01);
  EXPECT_THAT(waited->evidence, Contains(HasSubstr("GPU 1 stood free for 30.0 s")));
  EXPECT_THAT(waited->evidence, Contains(HasSubstr("double, needs 2 GPUs at once")));
  EXPECT_THAT(waited->bound, HasSubstr("1.33x"));
  EXPECT_THAT(e.headline, HasSubstr("passed beside waiting tasks"));
}

TEST(BatchRules, GapsBetweenTasksAreTheLaunchers) {
  RecordingBuilder builder(60, 0.5);
  builder.gpu(0, [](double) { return 0.4; }).queue(0, 9);
  for (int i = 0; i < 60; ++i) builder.attempt("w" + std::to_string(i), 100 + i, {0}, i, i + 0.75);
  const Explanation e = explain(builder.build());
  const Finding* waited = find_single(e, Cause::kTaskWaiting);
  ASSERT_NE(waited, nullptr);
  EXPECT_THAT(waited->evidence, Contains(HasSubstr("short gaps between tasks")));
  EXPECT_THAT(waited->advice, HasSubstr("fewer and longer tasks"));
}

TEST(BatchRules, GapsAfterTasksThatFailedAreNotTheLaunchers) {
  RecordingBuilder builder(60, 0.5);
  builder.gpu(0, [](double) { return 0.4; }).queue(0, 9);
  for (int i = 0; i < 60; ++i) builder.attempt({"w" + std::to_string(i), 100 + i, {0}, 1.0 * i, i + 0.75, "failed"});
  const Explanation e = explain(builder.build());
  const Finding* waited = find_single(e, Cause::kTaskWaiting);
  ASSERT_NE(waited, nullptr);
  EXPECT_THAT(waited->evidence, Contains(HasSubstr("after tasks that failed: the next one waits for a reading")));
  EXPECT_THAT(waited->advice, HasSubstr("see why these tasks failed"));
}

Explanation with_failures(const std::string& outcome) {
  RecordingBuilder builder(60, 0.5);
  builder.gpu(0, [](double) { return 0.97; });
  builder.task("good", 100, {0}, 0, 40).task({"bad", 101, {0}, 40, 60, 0, outcome});
  return explain(builder.build());
}

TEST(BatchRules, ABatchOfWhichNothingSucceedsSaysSoFirst) {
  RecordingBuilder builder(60, 0.5);
  builder.gpu(0, [](double) { return 0.97; });
  builder.task({"a", 100, {0}, 0, 20, 0, "failed"}).task({"b", 101, {0}, 20, 40, 0, "failed"});
  builder.task({"c", 102, {0}, 40, 60, 0, "failed"});
  const Explanation e = explain(builder.build());
  const Finding* finding = find_single(e, Cause::kWastedTrials);
  ASSERT_NE(finding, nullptr) << e.headline;
  EXPECT_THAT(finding->title, StartsWith("None of the 3 tasks that ended has succeeded"));
  EXPECT_THAT(find_single(with_failures("failed"), Cause::kWastedTrials)->title, StartsWith("Work of tasks"));
}

TEST(BatchRules, DiscardedWorkSaysHowItEnded) {
  const Explanation failed = with_failures("failed");
  const Finding* finding = find_single(failed, Cause::kWastedTrials);
  ASSERT_NE(finding, nullptr);
  EXPECT_NEAR(seconds(finding->cost()), 20, 0.6);
  EXPECT_THAT(finding->evidence, Contains(HasSubstr("1 of 2 attempts on a GPU did not succeed: 1 failed")));
  EXPECT_THAT(finding->evidence, Contains(HasSubstr("was of task bad")));
  EXPECT_THAT(finding->bound, HasSubstr("none at equal work: made right"));
  EXPECT_THAT(find_single(with_failures("interrupted"), Cause::kWastedTrials)->advice, HasSubstr("checkpoints"));
  EXPECT_THAT(find_single(with_failures(""), Cause::kWastedTrials)->evidence, Contains(HasSubstr("under way")));
  EXPECT_EQ(find_single(with_failures("succeeded"), Cause::kWastedTrials), nullptr);
}

TEST(BatchRules, IdleTimeBesideTasksThatSucceededIsNotTheCostOfOneThatFailed) {
  const auto told = [](bool alone) {
    RecordingBuilder builder(60, 0.5);
    builder.gpu(0, [](double t) { return t <= 20 ? 0.0 : 0.9; }).queue(0, 0);
    builder.process(100, 1, 0, 20, 0.5).context(100, 0, 0, 20).attempt({"bad", 100, {0}, 0, 20, "gpu_out_of_memory"});
    return explain(builder.task("good", 101, {0}, alone ? 20 : 0, 60).build());
  };
  const Explanation alone = told(true), beside = told(false);
  ASSERT_NE(find_single(alone, Cause::kOomRestartLoop), nullptr);
  EXPECT_NEAR(seconds(find_single(alone, Cause::kOomRestartLoop)->cost()), 20, 0.6);
  EXPECT_EQ(find_single(beside, Cause::kOomRestartLoop), nullptr) << "the other one would have kept it idle, too";
}

TEST(BatchRules, WithoutAnAttemptThatFailedWhatRanBesideItAndThePauseAfterItMayBeGone) {
  RecordingBuilder builder(60, 0.5);
  builder.gpu(0, [](double t) { return t <= 20 || t > 25 ? 0.9 : 0.0; }).queue(0, 0);
  builder.task("good", 100, {0}, 0, 20);
  builder.process(101, 1, 10, 20, 0.5).context(101, 0, 10, 20).attempt({"bad", 101, {0}, 10, 20, "failed"});
  builder.process(102, 1, 25, 60, 0.5).context(102, 0, 25, 60).attempt({"bad", 102, {0}, 25, 60, "succeeded"});
  const Explanation e = explain(builder.build());
  const Finding* lost = find_single(e, Cause::kWastedTrials);
  ASSERT_NE(lost, nullptr);
  EXPECT_LT(seconds(lost->cost()), 5) << "half of the kernels beside the other";
  EXPECT_NEAR(lost->gain->high, 60.0 / 45, 0.02) << "from its begin until its task runs again";
}

TEST(BatchRules, KernelsBesideAnAttemptThatNoListNamedMayBeItsToo) {
  const auto told = [](bool listed) {
    RecordingBuilder builder(3, 0.5);
    builder.gpu(0, [](double t) { return t <= 2 ? 0.5 : 0.0; }).queue(0, 0);
    builder.process(200, 1, 0, 3, 0.5).attempt("good", 200, {0}, 0, 3);
    builder.process(100, 1, 0, 2, 0.5);
    if (listed) builder.context(100, 0, 0, 2);
    return explain(builder.attempt({"bad", 100, {0}, 0, 2, "failed"}).build());
  };
  const Explanation unseen = told(false), seen = told(true);
  const Finding *maybe = find_single(unseen, Cause::kWastedTrials), *sure = find_single(seen, Cause::kWastedTrials);
  ASSERT_TRUE(maybe && sure);
  EXPECT_THAT(maybe->evidence, Contains(HasSubstr("no list of the driver named 1 of them: 500 ms of kernels")));
  EXPECT_THAT(maybe->evidence, Contains(HasSubstr("what is booked as their kernels ran for 500 ms")));
  EXPECT_THAT(sure->evidence, Contains(HasSubstr("their kernels ran for 1.0 s")));
  EXPECT_THAT(sure->evidence, Not(Contains(HasSubstr("no list of the driver"))));
}

TEST(BatchRules, ALastTaskThatNeverUsesTheGpuIsNoLackOfProgress) {
  const auto progress = [](bool listed) {
    RecordingBuilder builder(60, 0.5);
    builder.gpu(0, [](double t) { return t <= 30 ? 0.9 : 0.0; }).queue(0, 0).task("train", 100, {0}, 0, 30);
    builder.process(200, 1, 30, 60, 0);
    if (listed) builder.context(200, 0, 30, 60);
    for (const HealthCheck& check : explain(builder.attempt("last", 200, {0}, 30, 60).build()).health)
      if (check.check == "progress") return check;
    return HealthCheck{};
  };
  EXPECT_EQ(progress(false).good, Answer::kUnknown);
  EXPECT_THAT(progress(false).evidence, HasSubstr("no task that was seen to use a GPU"));
  EXPECT_EQ(progress(true).good, Answer::kNo);
}

TEST(BatchRules, ABatchEndedWellIfEveryTaskDid) {
  const auto ended = [](const Explanation& e) {
    for (const HealthCheck& check : e.health)
      if (check.check == "ended_well") return check.good;
    return Answer::kUnknown;
  };
  EXPECT_EQ(ended(with_failures("succeeded")), Answer::kYes);
  EXPECT_EQ(ended(with_failures("failed")), Answer::kNo);
  RecordingBuilder builder(60, 0.5);
  builder.gpu(0, [](double) { return 0.97; });
  builder.task({"t", 100, {0}, 0, 2, 0, "failed"}).task("t", 101, {0}, 2, 60);
  EXPECT_EQ(ended(explain(builder.build())), Answer::kYes) << "its second attempt succeeded";
}

TEST(BatchRules, OutOfMemoryHasItsOwnCause) {
  const Explanation e = with_failures("gpu_out_of_memory");
  EXPECT_EQ(find_single(e, Cause::kWastedTrials), nullptr);
  const Finding* finding = find_single(e, Cause::kOomRestartLoop);
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->advice, StartsWith("a smaller batch")) << "it was alone: no room would have helped";
  RecordingBuilder builder(60, 0.5);
  builder.gpu(0, [](double) { return 0.97; });
  builder.task("good", 100, {0}, 0, 60).task({"bad", 101, {0}, 30, 60, 0, "gpu_out_of_memory"});
  const Explanation shared = explain(builder.task({"worse", 102, {0}, 20, 40, 0, "failed"}).build());
  finding = find_single(shared, Cause::kOomRestartLoop);
  ASSERT_NE(finding, nullptr) << shared.headline;
  EXPECT_THAT(finding->advice, HasSubstr("gpu_memory"));
  EXPECT_THAT(finding->title, HasSubstr("most of it of tasks that ran out of memory"));
}

TEST(BatchRules, OfStartsThatDifferTheMeanIsSaidThatMakesTheirSum) {
  const auto startup = [](double number) { return std::fmod(number, 4) < 1 ? 4.5 : 0.5; };
  RecordingBuilder builder(120, 0.5);
  builder.gpu(0, [&](double t) {
    const double number = std::floor((t - 0.01) / 5);
    return t - 0.01 - 5 * number < startup(number) ? 0.0 : 0.97;
  });
  builder.queue(0, 9).queue(110, 0);
  for (int i = 0; i < 24; ++i)
    builder.task({"t" + std::to_string(i), 100 + i, {0}, 5.0 * i, 5.0 * i + 5, startup(i) / 2});
  const Explanation e = explain(builder.build());
  const Finding* churn = find_single(e, Cause::kTrialChurn);
  ASSERT_NE(churn, nullptr);
  EXPECT_THAT(churn->evidence,
              Contains(HasSubstr("24 starts, in half of them at most 515 ms, on average 1.5 s (4.5 s at most)")));
}

TEST(BatchRules, ManyStartsAreChurn) {
  const Explanation e = explain(pairs(60, 5, 0.97, 50, 1.5));
  const Finding* churn = find_single(e, Cause::kTrialChurn);
  ASSERT_NE(churn, nullptr);
  EXPECT_THAT(churn->evidence, Contains(HasSubstr("24 starts, in each about 1.5 s")));
  for (const Finding& finding : e.findings)
    EXPECT_THAT(finding.candidates, Not(Contains(Cause::kStartupLoad))) << "the same time, told twice";
  // Three long tasks with the same share of start-up are no churn.
  const Explanation few = explain(pairs(60, 30, 0.97, 30, 9));
  EXPECT_EQ(find_single(few, Cause::kTrialChurn), nullptr);
  EXPECT_EQ(find_single(explain(pairs(60, 15, 0.97, 45, 4)), Cause::kTrialChurn), nullptr)
      << "eight starts are not many";
}

// What each does anew before its first kernel is work, whatever it costs.
TEST(BatchRules, CodeOfItsOwnBeforeATasksFirstKernelIsNotSurelyStartUp) {
  const auto churn = [](const std::string& frame) { return explain(pairs(60, 5, 0.97, 50, 1.5, frame)); };
  const Explanation own = churn("make_features (/u/win.py:9)"),
                    imports = churn("_find_and_load (<frozen importlib._bootstrap>:1)");
  ASSERT_TRUE(find_single(own, Cause::kTrialChurn) && find_single(imports, Cause::kTrialChurn));
  EXPECT_EQ(find_single(own, Cause::kTrialChurn)->confidence, Confidence::kLow);
  EXPECT_THAT(find_single(own, Cause::kTrialChurn)->title, StartsWith("Many tasks each run code of their own"));
  EXPECT_THAT(find_single(own, Cause::kTrialChurn)->advice, HasSubstr("what each does anew is work"));
  EXPECT_EQ(find_single(imports, Cause::kTrialChurn)->confidence, Confidence::kHigh);
}

Explanation sparse(std::int64_t peak_bytes, Nanos cpu_time, double cores, const std::string& flag, double busy = 0,
                   double utilisation = 0.25, double empty = 60) {
  RecordingBuilder builder(60, 0.5);
  builder.gpu(0, [=](double) { return utilisation; });
  Host host;
  host.cores = static_cast<int>(cores);
  host.cores_usable = cores;
  const SourceId id = builder.sink().add_source({SourceKind::kHost, "host", kNoSource, to_attrs(host)});
  for (const int second : {0, 60})
    if (busy > 0)
      builder.sink().add_row(id, RecordingBuilder::at(second),
                             std::array{cell(Metric::kHostCpuBusy, RecordingBuilder::ns(busy * second))});
  builder.meta().command = {"headroom", "batch", "w.toml", flag};
  builder.queue(0, 9).queue(empty, 0);
  for (int i = 0; i < 6; ++i)
    builder.task({.name = "w" + std::to_string(i),
                  .pid = 100 + i,
                  .gpus = {0},
                  .from = 10.0 * i,
                  .to = 10.0 * (i + 1),
                  .more = {.cpu_time = cpu_time, .peak_gpu_bytes = peak_bytes}});
  return explain(builder.build());
}

TEST(BatchRules, FailuresCountUntilATaskSucceeds) {
  const auto failed = [](const std::string& last) {
    RecordingBuilder builder(40, 0.5);
    builder.gpu(0, [](double) { return 0.5; }).queue(0, 9);
    builder.task({"a", 100, {0}, 0, 10, 0, "failed"}).task({"b", 101, {0}, 10, 20, 0, "gpu_out_of_memory"});
    return explain(builder.task({"c", 102, {0}, 20, 30, 0, last}).build()).batch->failed_before_any_success;
  };
  EXPECT_EQ(failed("failed"), 3) << "the second had the GPU to itself";
  EXPECT_EQ(failed("cancelled"), 2);
  EXPECT_EQ(failed("succeeded"), 0);
}

TEST(BatchRules, UnderPackingNeedsRoomForMore) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  const Explanation e = sparse(4 * kGiB, 5 * kSecond, 16, "--no-pack");
  const Finding* finding = find_single(e, Cause::kUnderPacking);
  ASSERT_NE(finding, nullptr);
  EXPECT_NEAR(seconds(finding->cost()), 45, 1);
  EXPECT_THAT(finding->evidence, Contains(HasSubstr("1.0 tasks per GPU kept kernels resident for 25 %")));
  EXPECT_THAT(finding->evidence, Contains(HasSubstr("the command said --no-pack")));
  EXPECT_THAT(finding->bound, HasSubstr("4.0x at most, with 4 tasks per GPU"));
  EXPECT_EQ(find_single(sparse(40 * kGiB, 5 * kSecond, 16, "--no-pack"), Cause::kUnderPacking), nullptr)
      << "memory is full";
  EXPECT_EQ(find_single(sparse(4 * kGiB, 20 * kSecond, 2, "--no-pack"), Cause::kUnderPacking), nullptr)
      << "cores are busy";
  EXPECT_EQ(find_single(sparse(4 * kGiB, 5 * kSecond, 2, "", 1.9), Cause::kUnderPacking), nullptr)
      << "tasks wait for cores";
  EXPECT_NE(find_single(sparse(4 * kGiB, 5 * kSecond, 2, "", 0.6), Cause::kUnderPacking), nullptr);
  EXPECT_THAT(find_single(sparse(4 * kGiB, 5 * kSecond, 2, "", 1.2), Cause::kUnderPacking)->bound,
              HasSubstr("4.0x at most, with 4 tasks per GPU, if their kernels do not slow each other down and other "
                        "programs take no cores"))
      << "they may go away";
  EXPECT_THAT(find_single(sparse(20 * kGiB, 5 * kSecond, 16, ""), Cause::kUnderPacking)->bound,
              HasSubstr("2.0x at most"));
}

TEST(BatchRules, MoreTasksAtOnceThanThereAreArePromisedNothing) {
  EXPECT_THAT(find_single(sparse(std::int64_t{1} << 30, kSecond, 16, "", 0, 0.1), Cause::kUnderPacking)->bound,
              HasSubstr("with 6 tasks per GPU"));
  RecordingBuilder builder(60, 0.5);
  builder.gpu(0, [](double) { return 0.25; }).machine(16, 1).queue(0, 9).queue(60, 0);
  const events::AttemptEnd measured{.cpu_time = 5 * kSecond, .peak_gpu_bytes = std::int64_t{1} << 30};
  builder.task({"long", 100, {0}, 0, 60, 0, "succeeded", measured});
  for (int i = 1; i < 4; ++i)
    builder.task({"w" + std::to_string(i), 100 + i, {0}, 10.0 * i, 10.0 * i + 10, 0, "succeeded", measured});
  EXPECT_EQ(find_single(explain(builder.build()), Cause::kUnderPacking), nullptr) << "the longest takes as long";
}

TEST(BatchRules, OnlyTimeInWhichTasksWaitedIsUnderPacked) {
  const Explanation e = sparse(1 << 30, 5 * kSecond, 16, "", 0, 0.25, 20);
  ASSERT_NE(find_single(e, Cause::kUnderPacking), nullptr);
  EXPECT_NEAR(seconds(find_single(e, Cause::kUnderPacking)->cost()), 15, 1);
}

TEST(BatchRules, PackingGainsByTasksThatNoneWaitsBesideToo) {
  const Explanation e = sparse(1 << 30, 5 * kSecond, 16, "", 0, 0.25, 20);
  EXPECT_THAT(find_single(e, Cause::kUnderPacking)->bound, HasSubstr("4.0x at most")) << "six of 10 s, four at once";
  const Explanation short_kernels = sparse(1 << 30, kSecond, 16, "", 0, 0.1);
  EXPECT_THAT(find_single(short_kernels, Cause::kUnderPacking)->bound, HasSubstr("6.0x at most"))
      << "60 s, and each of the six takes 10";
}

TEST(BatchRules, AFullGpuIsNotUnderPacked) {
  EXPECT_EQ(find_single(sparse(1 << 30, 5 * kSecond, 16, "", 0, 0.7), Cause::kUnderPacking), nullptr);
  EXPECT_EQ(find_single(explain(pairs(60, 10, 0.97, 60)), Cause::kUnderPacking), nullptr);
}

TEST(BatchRules, TasksTooShortToBeSeenAreNoAccusation) {
  RecordingBuilder builder(20, 0.5);
  builder.gpu(0, [](double) { return 0.9; }).gpu(1, [](double) { return 0.0; }).queue(0, 9);
  for (int i = 0; i < 100; ++i) builder.attempt("w" + std::to_string(i), 100 + i, {0}, 0.2 * i, 0.2 * (i + 1));
  const Explanation e = explain(builder.queue(19, 0).build());
  EXPECT_EQ(find_single(e, Cause::kJobNeverUsesGpu), nullptr);
  EXPECT_EQ(find_single(e, Cause::kWrongGpuAssignment), nullptr);
  EXPECT_EQ(find_single(e, Cause::kMonitoringMostlyElse), nullptr);
  EXPECT_EQ(e.ledger.total(Account::kNotUsed), 0);
  for (const Finding& finding : e.findings)
    EXPECT_THAT(finding.candidates, Not(Contains(Cause::kWrongGpuAssignment))) << finding.title;
  ASSERT_FALSE(e.ledger.tasks.empty());
}

TEST(BatchRules, ABatchOnOneOfTwoGpusIsNotCrowded) {
  RecordingBuilder builder(40, 0.5);
  builder.gpu(0, [](double) { return 0.97; }).gpu(1, [](double) { return 0.0; });
  builder.task("a", 100, {0}, 0, 20).task("b", 101, {0}, 20, 40);
  Recording recording = builder.build();
  for (Source& source : recording.sources) {
    if (source.kind == SourceKind::kProcess) source.attrs["cuda_visible_devices"] = "GPU-0";
    if (source.kind == SourceKind::kGpu) source.attrs["given"] = source.key == "GPU-0" ? "true" : "false";
  }
  const Explanation e = explain(recording);
  EXPECT_EQ(e.ledger.devices.size(), 1U);
  EXPECT_EQ(find_single(e, Cause::kWrongGpuAssignment), nullptr);
}

TEST(BatchRules, TheEndsOfManyTasksAreNoGpuThatIsKept) {
  RecordingBuilder builder(60, 0.5);
  builder.gpu(0, [](double t) { return std::fmod(t - 0.1, 10) < 7 ? 0.97 : 0.0; });
  for (int i = 0; i < 6; ++i) builder.task("w" + std::to_string(i), 100 + i, {0}, 10 * i, 10 * (i + 1));
  const Explanation e = explain(builder.build());
  EXPECT_GT(e.ledger.total(Account::kTeardown), 15 * kSecond);
  for (const Finding& finding : e.findings) EXPECT_THAT(finding.title, Not(HasSubstr("held after its last kernel")));
}

TEST(BatchRules, TasksWithoutAnyKernelAreNotToldToShareAGpu) {
  RecordingBuilder builder(20, 0.5);
  builder.gpu(0, [](double) { return 0.0; }).queue(0, 9);
  for (int i = 0; i < 100; ++i) builder.attempt("w" + std::to_string(i), 100 + i, {0}, 0.2 * i, 0.2 * (i + 1));
  const Explanation e = explain(builder.queue(19, 0).build());
  EXPECT_EQ(find_single(e, Cause::kUnderPacking), nullptr);
  ASSERT_EQ(e.findings.size(), 1U);
  EXPECT_THAT(e.findings[0].candidates, Contains(Cause::kStartupLoad));
  EXPECT_THAT(e.findings[0].advice, HasSubstr("--gpus none"));
}

TEST(BatchRules, EqualWorkOnBothGpusBoundsTheBatch) {
  RecordingBuilder builder(100, 0.5);
  builder.gpu(0, [](double) { return 0.5; }).gpu(1, [](double) { return 0.0; });
  builder.queue(0, 9);
  for (int i = 0; i < 10; ++i) builder.task("w" + std::to_string(i), 100 + i, {0}, 10 * i, 10 * (i + 1));
  const Explanation e = explain(builder.build());
  ASSERT_TRUE(e.bound);
  EXPECT_NEAR(e.bound->speedup_high, 4.0, 0.05);  // 50 s of kernels on two GPUs: 25 s
}

}  // namespace
}  // namespace headroom
