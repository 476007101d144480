// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analyze/ledger.h"
#include "analyze/testing.h"

namespace headroom {
namespace {

using testing::RecordingBuilder;

Ledger whole(const Recording& recording) {
  const JobView job = job_view(recording);
  Ledger l = ledger(testing::times_of(recording), recording.meta.start, recording.meta.end);
  l.tasks = job.batch.tasks;
  return l;
}

double of_task(const Ledger& l, Account account, const std::string& task) {
  Nanos sum = 0;
  for (const auto& entry : l.entries)
    if (entry.account == account && entry.task >= 0 && l.tasks[static_cast<std::size_t>(entry.task)] == task)
      sum += entry.ns;
  return seconds(sum);
}

double total(const Ledger& l, Account account, std::optional<std::size_t> device = std::nullopt) {
  return seconds(l.total(account, device));
}

TEST(BatchLedger, FreeTimeIsTheLaunchersFaultWhileATaskWaits) {
  const Ledger l = whole(RecordingBuilder(30)
                             .gpu(0, [](double t) { return t <= 10 ? 1.0 : 0.0; })
                             .queue(0, 3)
                             .task("a", 100, {0}, 0, 10)
                             .queue(22.5, 0)
                             .build());
  EXPECT_NEAR(total(l, Account::kUseful), 10, 1e-6);
  EXPECT_NEAR(total(l, Account::kTaskWaiting), 12.5, 1e-6);
  EXPECT_NEAR(total(l, Account::kNoTask), 7.5, 1e-6);
}

TEST(BatchLedger, WithoutWaitingTasksAFreeGpuHasNoTask) {
  const Ledger l = whole(RecordingBuilder(20)
                             .gpu(0, [](double) { return 1.0; })
                             .gpu(1, [](double) { return 0.0; })
                             .task("only", 100, {0}, 0, 20)
                             .build());
  EXPECT_NEAR(total(l, Account::kNoTask, 1), 20, 1e-6);
  EXPECT_EQ(l.total(Account::kNotUsed), 0);
  EXPECT_EQ(l.total(Account::kTaskWaiting), 0);
}

// The driver's reading is of its last period, of up to a second.
TEST(BatchLedger, AReadingJustAfterTheLastTaskIsOfItsKernels) {
  RecordingBuilder builder(20, 0.5);
  builder.gpu(0, [](double t) { return t <= 10.5 ? 1.0 : 0.0; }).task("only", 100, {0}, 0, 10);
  const Ledger l = whole(builder.build());
  EXPECT_NEAR(of_task(l, Account::kUseful, "only"), 10, 1e-6);
  EXPECT_NEAR(total(l, Account::kUseful), 10, 1e-6);
  EXPECT_NEAR(total(l, Account::kNoTask), 10, 1e-6);
}

TEST(BatchLedger, KernelsLongAfterTheLastTaskAreSomebodys) {
  RecordingBuilder builder(20, 0.5);
  builder.gpu(0, [](double) { return 1.0; }).task("only", 100, {0}, 0, 10);
  EXPECT_NEAR(total(whole(builder.build()), Account::kUseful), 19, 1e-6);
}

TEST(BatchLedger, KernelsOfAnAttemptThatDidNotSucceedAreDiscarded) {
  for (const char* outcome : {"failed", "gpu_out_of_memory", "interrupted", "device_lost", ""}) {
    const Ledger l = whole(RecordingBuilder(20)
                               .gpu(0, [](double) { return 1.0; })
                               .task("good", 100, {0}, 0, 8)
                               .task({"bad", 101, {0}, 8, 20, 0, outcome})
                               .build());
    EXPECT_NEAR(of_task(l, Account::kUseful, "good"), 8, 1e-6) << outcome;
    EXPECT_NEAR(of_task(l, Account::kDiscarded, "bad"), 12, 1e-6) << outcome;
    EXPECT_EQ(of_task(l, Account::kUseful, "bad"), 0) << outcome;
  }
}

TEST(BatchLedger, AFailedAttemptOfATaskDoesNotTakeItsRetryAlong) {
  const Ledger l = whole(RecordingBuilder(20)
                             .gpu(0, [](double) { return 1.0; })
                             .task({"t", 100, {0}, 0, 5, 0, "failed"})
                             .task("t", 101, {0}, 5, 20)
                             .build());
  EXPECT_NEAR(of_task(l, Account::kDiscarded, "t"), 5, 1e-6);
  EXPECT_NEAR(of_task(l, Account::kUseful, "t"), 15, 1e-6);
}

// The driver's list had them, and no look at the tree of processes.
TEST(BatchLedger, ProcessesOfATaskThatNoLookFoundAreTheJobs) {
  const auto foreign = [](std::int64_t parent, double from) {
    RecordingBuilder builder(30);
    builder.gpu(0, [](double) { return 1.0; }).attempt("a", 100, {0}, 10, 20);
    builder.process({100, 1, 10, 20, 0.9, false})
        .process({101, parent, from, 20, 0.9, false})
        .context(101, 0, from, 20);
    return total(whole(builder.build()), Account::kForeign);
  };
  EXPECT_EQ(foreign(100, 11), 0) << "its child";
  EXPECT_GT(foreign(1, 11), 5) << "somebody else's";
  EXPECT_GT(foreign(100, 5), 5) << "a number of before";
}

TEST(BatchLedger, ProcessesBelongToTheAttemptTheyDescendFrom) {
  RecordingBuilder builder(20);
  builder.gpu(0, [](double) { return 1.0; });
  builder.process(100, 1, 0, 20, 0).process(101, 100, 0, 20, 0).process(102, 101, 0, 20, 0.9);
  builder.process(200, 1, 0, 20, 0).process(201, 200, 0, 20, 0.9);
  builder.attempt("deep", 100, {0}, 0, 20).attempt("shallow", 200, {0}, 0, 20);
  builder.context(102, 0, 0, 20, 0.75).context(201, 0, 0, 20, 0.25);
  const Ledger l = whole(builder.build());
  EXPECT_NEAR(of_task(l, Account::kUseful, "deep"), 15, 0.3);
  EXPECT_NEAR(of_task(l, Account::kUseful, "shallow"), 5, 0.3);
}

TEST(BatchLedger, AReusedProcessIdIsTheAttemptsThatRanThen) {
  RecordingBuilder builder(20);
  builder.gpu(0, [](double) { return 1.0; });
  builder.task("second", 100, {0}, 10, 20);  // its process is the only one that was seen
  builder.attempt("first", 100, {0}, 0, 5);
  const Ledger l = whole(builder.build());
  EXPECT_NEAR(of_task(l, Account::kUseful, "second"), 10, 1.1);
  EXPECT_NEAR(of_task(l, Account::kUseful, "first"), 5, 1.1);
}

TEST(BatchLedger, TheAttemptBeforeAndTheOneAfterKeepTheirProcesses) {
  RecordingBuilder builder(20);
  builder.gpu(0, [](double) { return 1.0; }).gpu(1, [](double) { return 1.0; });
  builder.process(100, 1, 0, 5, 0.9).context(100, 0, 0, 5).attempt("first", 100, {0}, 0, 5);
  builder.process(200, 1, 6, 20, 0.9).context(200, 1, 6, 20).attempt("second", 200, {1}, 6, 20);
  builder.process(100, 200, 8, 20, 0.9).context(100, 1, 8, 20);  // its child, with the first one's number
  builder.attempt("third", 100, {0}, 12, 20);                    // and again, never seen
  const Ledger l = whole(builder.build());
  EXPECT_NEAR(of_task(l, Account::kUseful, "first"), 5, 1.1);
  EXPECT_NEAR(of_task(l, Account::kUseful, "second"), 14, 1.1);
  EXPECT_NEAR(of_task(l, Account::kUseful, "third"), 8, 1.1);
}

// The driver lists a process until its context is gone.
TEST(BatchLedger, WhatEndedJustBeforeItWasSeenOnTheGpuIsItsTasks) {
  const auto others = [](double ended) {
    RecordingBuilder builder(20);
    builder.gpu(0, [](double t) { return t > 5 && t <= 6 ? 1.0 : 0.0; });
    builder.process(100, 1, 4, ended, 0.9).context(100, 0, 6, 6).attempt("short", 100, {0}, 4, ended);
    return total(whole(builder.build()), Account::kForeign);
  };
  EXPECT_EQ(others(5.99), 0);
  EXPECT_EQ(others(5.2), 0);
  EXPECT_GT(others(4.5), 0) << "its number is another's by then";
}

TEST(BatchLedger, AProcessThatLeftItsTreeBesideTwoAttemptsIsNobodys) {
  RecordingBuilder builder(20);
  builder.gpu(0, [](double) { return 1.0; });
  builder.attempt({"a", 100, {0}, 0, 20, "failed"}).attempt({"b", 200, {0}, 0, 20, "failed"});
  builder.process(150, 1, 0, 20, 0.9).context(150, 0, 0, 20);
  EXPECT_NEAR(total(whole(builder.build()), Account::kUseful), 20, 1e-6);
}

TEST(BatchLedger, AProcessThatLeftItsTreeBelongsToTheOnlyAttemptThere) {
  RecordingBuilder builder(20);
  builder.gpu(0, [](double) { return 1.0; }).gpu(1, [](double) { return 1.0; });
  builder.attempt("a", 100, {0}, 0, 20).attempt({"b", 200, {1}, 0, 20, "failed"});
  builder.process(150, 1, 0, 20, 0.9).context(150, 0, 0, 20);
  builder.process(250, 1, 0, 20, 0.9).context(250, 1, 0, 20);
  const Ledger l = whole(builder.build());
  EXPECT_NEAR(of_task(l, Account::kUseful, "a"), 20, 1e-6);
  EXPECT_NEAR(of_task(l, Account::kDiscarded, "b"), 20, 1e-6);
}

TEST(BatchLedger, TasksTooShortToBeListedOwnTheirTime) {
  RecordingBuilder builder(20);
  builder.gpu(0, [](double t) { return t <= 10 ? 0.5 : 0.0; });
  for (int i = 0; i < 40; ++i) builder.attempt("t" + std::to_string(i), 100 + i, {0}, 0.25 * i, 0.25 * (i + 1));
  const Ledger l = whole(builder.build());
  double useful = 0;
  for (int i = 0; i < 40; ++i) useful += of_task(l, Account::kUseful, "t" + std::to_string(i));
  EXPECT_NEAR(useful, 5, 1e-6);
  EXPECT_NEAR(of_task(l, Account::kUseful, "t7"), 0.125, 1e-3);
  EXPECT_NEAR(total(l, Account::kNoTask), 10, 1e-6);
  EXPECT_EQ(l.total(Account::kNotUsed), 0);
}

TEST(BatchLedger, KernelsRanWhileATaskHadTheGpu) {
  RecordingBuilder builder(40);
  builder.gpu(0, [](double) { return 0.6; }).queue(0, 9);
  for (int i = 0; i < 40; ++i) builder.attempt("t" + std::to_string(i), 100 + i, {0}, i, i + 0.75);
  const Ledger l = whole(builder.build());
  EXPECT_NEAR(total(l, Account::kUseful), 24, 1e-6);
  EXPECT_NEAR(total(l, Account::kTaskWaiting), 10, 1e-6);  // the gaps, although readings are a second apart
}

TEST(BatchLedger, ATaskOnTheCpuOwnsNoKernels) {
  RecordingBuilder builder(20);
  builder.gpu(0, [](double) { return 1.0; });
  builder.process(100, 1, 0, 20, 0.9).context(100, 0, 0, 20, 0.0).attempt("gpu", 100, {0}, 0, 20);  // no share measured
  builder.process(101, 1, 0, 20, 0.9)
      .attempt({"cpu", 101, {0}, 0, 20, "failed", {.proof = PlacementProof::kCpuFallback}});
  const Ledger l = whole(builder.build());
  EXPECT_NEAR(of_task(l, Account::kUseful, "gpu"), 20, 1e-6);
  EXPECT_EQ(l.total(Account::kDiscarded), 0);
}

TEST(BatchLedger, MoreKernelsThanTheTasksHadTimeForGoByTheirTime) {
  RecordingBuilder builder(10);
  builder.gpu(0, [](double) { return 1.0; });
  for (int i = 0; i < 10; ++i)
    builder.attempt("long", 100 + i, {0}, i, i + 0.72).attempt("short", 200 + i, {0}, i + 0.72, i + 0.96);
  const Ledger l = whole(builder.build());
  EXPECT_NEAR(of_task(l, Account::kUseful, "long"), 7.5, 1e-6);
  EXPECT_NEAR(of_task(l, Account::kUseful, "short"), 2.5, 1e-6);
}

TEST(BatchLedger, AShellThatWaitsForAnUnseenTaskIsNoDataLoader) {
  RecordingBuilder builder(20);
  builder.gpu(0, [](double t) { return t == 1 || t == 10 || t == 11 || t == 20 ? 0.1 : 0.0; });
  builder.process(100, 1, 0, 10, 0.0).process(101, 100, 0, 10, 0.9).attempt("t", 100, {0}, 0, 10);
  builder.process(200, 1, 10, 20, 0.9).attempt("u", 200, {0}, 10, 20);
  const Ledger l = whole(builder.build());
  EXPECT_EQ(of_task(l, Account::kInput, "t"), 0);
  EXPECT_NEAR(of_task(l, Account::kUnexplained, "t"), 8.9, 1e-6);
  EXPECT_NEAR(of_task(l, Account::kHostCode, "u"), 8.9, 1.1);
}

TEST(BatchLedger, ATaskThatFollowsAnotherHasItsOwnStartUp) {
  RecordingBuilder builder(20);
  builder.gpu(0, [](double t) { return t < 10.5 ? 1.0 : t < 11.5 ? 0.2 : t < 13.5 ? 0.0 : 1.0; });
  builder.task("first", 100, {0}, 0, 10.2).task({"second", 101, {0}, 10.2, 20, 0.5});
  const Ledger l = whole(builder.build());
  EXPECT_NEAR(of_task(l, Account::kUseful, "first"), 10.2, 1e-6);  // what ran between 10 s and 11 s was its own
  EXPECT_NEAR(of_task(l, Account::kStartup, "second"), 2.8, 1e-6);
  EXPECT_NEAR(of_task(l, Account::kUseful, "second"), 7, 1e-6);
}

TEST(BatchLedger, StartUpBeginsWithTheAttempt) {
  RecordingBuilder builder(20);
  builder.gpu(0, [](double t) { return t > 8 && t <= 18 ? 1.0 : 0.0; });
  builder.process(100, 1, 0, 20, 0.1).process(101, 100, 5, 18, 0.9).context(101, 0, 7, 18);
  builder.attempt("t", 100, {0}, 0, 20);  // a shell that prepares for five seconds and tidies up for two
  const Ledger l = whole(builder.build());
  EXPECT_NEAR(of_task(l, Account::kStartup, "t"), 8, 1e-6);
  EXPECT_NEAR(of_task(l, Account::kUseful, "t"), 10, 1e-6);
  EXPECT_NEAR(of_task(l, Account::kTeardown, "t"), 2, 1e-6);
}

TEST(BatchLedger, TheFirstProcessHasTheTimesOfItsAttempt) {
  RecordingBuilder builder(20);
  builder.gpu(0, [](double t) { return t > 8 && t <= 18 ? 1.0 : 0.0; });
  builder.process(100, 1, 0.05, 19.5, 0.9).context(100, 0, 7, 19).attempt("t", 100, {0}, 0, 20);
  const Ledger l = whole(builder.build());
  EXPECT_EQ(std::count_if(l.entries.begin(), l.entries.end(),
                          [](const auto& entry) { return entry.account == Account::kStartup; }),
            1);
  EXPECT_NEAR(of_task(l, Account::kStartup, "t"), 8, 1e-6);
  EXPECT_NEAR(of_task(l, Account::kTeardown, "t"), 2, 1e-6);
}

TEST(BatchLedger, AnAttemptThatNeverHeldItsGpuDidNotUseIt) {
  for (const bool given_two : {true, false}) {
    RecordingBuilder fresh(60);
    fresh.gpu(0, [](double) { return 0.9; }).gpu(1, [](double) { return 0.0; });
    fresh.process(100, 1, 0, 60, 0.9).context(100, 0, 0, 60);
    fresh.attempt("t", 100, given_two ? std::vector<int>{0, 1} : std::vector<int>{0}, 0, 60);
    const Ledger l = whole(fresh.build());
    EXPECT_NEAR(total(l, Account::kNotUsed, 1), given_two ? 60 : 0, 1e-6);
    EXPECT_NEAR(total(l, Account::kNoTask, 1), given_two ? 0 : 60, 1e-6);
  }
}

// Four readings of the lists without it are enough; two are not, and then nothing of its CPU time says why a GPU was
// idle.
TEST(BatchLedger, AnAttemptThatWasLookedForInVainDidNotUseItsGpu) {
  const auto booked = [](double length, double util) {
    RecordingBuilder fresh(20);
    fresh.gpu(0, [=](double t) { return t > 3 && t < 5 ? util : 0.0; });
    fresh.process(100, 1, 1, 1 + length, 0.9).queue(0, 0).attempt("t", 100, {0}, 1, 1 + length);
    return whole(fresh.build());
  };
  EXPECT_NEAR(of_task(booked(12, 0), Account::kNotUsed, "t"), 12, 1e-6);
  EXPECT_NEAR(of_task(booked(2.5, 0), Account::kUnexplained, "t"), 2.5, 1e-6);
  EXPECT_EQ(booked(2.5, 0).total(Account::kHostCode), 0);
  // Kernels that nobody else can have run are its own: it was there between two looks.
  EXPECT_NEAR(of_task(booked(12, 0.5), Account::kUseful, "t"), 0.5, 1e-6);
  EXPECT_EQ(booked(12, 0.5).total(Account::kNotUsed), 0);
}

TEST(BatchLedger, AnAttemptBesideOthersThatWasLookedForInVainHasNoKernels) {
  RecordingBuilder fresh(20);
  fresh.gpu(0, [](double) { return 0.5; }).queue(0, 0);
  fresh.task("on it", 100, {0}, 0, 20).process(200, 1, 2, 12, 0.9).attempt("beside", 200, {0}, 2, 12);
  const Ledger l = whole(fresh.build());
  EXPECT_NEAR(of_task(l, Account::kUseful, "on it"), 10, 1e-6);
  EXPECT_EQ(of_task(l, Account::kUseful, "beside"), 0);
  EXPECT_EQ(of_task(l, Account::kStartup, "beside"), 0);
}

// One look at the lists is not enough to say that it never used the GPU, but the kernels are whose context was there.
TEST(BatchLedger, WhoWasListedOwnsTheKernelsBesideOneWhoWasNot) {
  RecordingBuilder fresh(20);
  fresh.gpu(0, [](double) { return 0.5; }).queue(0, 0);
  fresh.process(100, 1, 0, 20, 0.9).context(100, 0, 0, 20, 0.0).attempt("on it", 100, {0}, 0, 20);
  fresh.attempt("beside", 200, {0}, 4.2, 5.4);
  const Ledger l = whole(fresh.build());
  EXPECT_NEAR(of_task(l, Account::kUseful, "on it"), 10, 1e-6);
  EXPECT_EQ(of_task(l, Account::kUseful, "beside"), 0);
}

TEST(BatchLedger, OfTwoThatNoListNamedNeitherIsKnownToHaveHeldTheGpuAfterTheKernels) {
  const auto torn_down = [](bool two) {
    RecordingBuilder fresh(5);
    fresh.gpu(0, [](double t) { return t <= 1 ? 0.4 : 0.0; }).queue(0, 0);
    if (two) fresh.attempt({"short", 100, {0}, 0, 1, "failed"});
    fresh.attempt("long", 200, {0}, 0, 2.5);
    return whole(fresh.build());
  };
  EXPECT_EQ(total(torn_down(true), Account::kTeardown), 0);
  EXPECT_NEAR(of_task(torn_down(true), Account::kUnexplained, "long"), 1.5, 0.7);
  EXPECT_NEAR(of_task(torn_down(false), Account::kTeardown, "long"), 1.5, 1e-6);
}

// Each starts up for 3 of its 4 seconds, beside one that computes: too short to be listed.
Recording short_tasks_in_turn(bool files_looked_at) {
  RecordingBuilder recording(20, 0.5);
  recording.gpu(0, [](double t) { return std::fmod(t, 2) > 1.4 || t <= 2 ? 0.0 : 0.5; }).queue(0, 0);
  for (int i = 0; i < 9; ++i) {
    const double from = 2.0 * i;
    recording.process(100 + i, 1, from, std::min(20.0, from + 4), 0.9)
        .attempt("t" + std::to_string(i), 100 + i, {0}, from, std::min(20.0, from + 4));
    if (files_looked_at) recording.no_gpu_until(100 + i, from + 3, from + 3.1);
  }
  return recording.build();
}

TEST(BatchLedger, WhoHasNoFileOfAGpuOpenIsStartingWhoeverComputesMeanwhile) {
  const Ledger l = whole(short_tasks_in_turn(true)), before = whole(short_tasks_in_turn(false));
  EXPECT_EQ(of_task(l, Account::kHostCode, "t3") + of_task(l, Account::kUnexplained, "t3"), 0);
  EXPECT_GT(of_task(before, Account::kHostCode, "t3"), 0) << "without it that is not known";
  EXPECT_GT(total(l, Account::kStartup), total(before, Account::kStartup) + 3);
  EXPECT_NEAR(total(l, Account::kUseful), total(before, Account::kUseful), 1e-6);
}

TEST(BatchLedger, WhoEndedWithoutAFileOfAGpuNeverUsedIt) {
  RecordingBuilder recording(10);
  recording.gpu(0, [](double t) { return t > 4 && t <= 6 ? 0.5 : 0.0; }).queue(0, 0);
  recording.process(100, 1, 0, 3, 0.9).attempt("on the CPU", 100, {0}, 0, 3).no_gpu_until(100, 2.9);
  recording.process(101, 1, 3, 7, 0.9).attempt("on the GPU", 101, {0}, 3, 7).no_gpu_until(101, 3.8, 3.9);
  const Ledger l = whole(recording.build());
  EXPECT_NEAR(of_task(l, Account::kNotUsed, "on the CPU"), 3, 1e-6);
  EXPECT_NEAR(of_task(l, Account::kUseful, "on the GPU"), 1, 1e-6);
  EXPECT_GE(of_task(l, Account::kStartup, "on the GPU"), 0.8 - 1e-6);
}

// The last look may be long before its end: whether it used the GPU after that is not known.
TEST(BatchLedger, WhoWasNeverSeenToOpenAGpuIsNotStartingUp) {
  const auto booked = [](std::optional<double> opened) {
    RecordingBuilder recording(6, 2);  // too few looks at the list
    recording.gpu(0, [](double) { return 0.0; }).queue(0, 0).process(100, 1, 0, 5, 0.9);
    return whole(recording.attempt("a", 100, {0}, 0, 5).no_gpu_until(100, 4, opened).build());
  };
  EXPECT_EQ(booked(std::nullopt).total(Account::kStartup), 0);
  EXPECT_EQ(booked(std::nullopt).total(Account::kUnexplained), 5 * kSecond);
  EXPECT_EQ(booked(4.2).total(Account::kStartup), 4 * kSecond);
}

TEST(BatchLedger, WhoLivedTooShortlyForAContextUsedNoGpuUnlessKernelsRan) {
  const auto short_one = [](double busy) {
    RecordingBuilder recording(3);
    recording.gpu(0, [=](double t) { return t <= 1 ? busy : 0.0; }).queue(0, 0);
    return whole(recording.process(100, 1, 0.1, 0.3, 0.9).attempt({"a", 100, {0}, 0.1, 0.3, "failed"}).build());
  };
  EXPECT_NEAR(of_task(short_one(0), Account::kNotUsed, "a"), 0.2, 1e-6);
  EXPECT_NEAR(of_task(short_one(0.1), Account::kDiscarded, "a"), 0.1, 1e-6);
}

TEST(BatchLedger, AHelperThatEndedInTheStartUpDoesNotHideWhenItsTaskOpenedAGpu) {
  RecordingBuilder recording(10);
  recording.gpu(0, [](double t) { return t > 6 && t <= 8 ? 0.5 : 0.0; }).queue(0, 0);
  recording.process(100, 1, 0, 8, 0.9).attempt("a", 100, {0}, 0, 8).no_gpu_until(100, 5, 5.1);
  recording.process(200, 1, 0, 8, 0.9).attempt("b", 200, {0}, 0, 8).no_gpu_until(200, 5, 5.1);
  recording.process(101, 100, 1, 3, 0.9).no_gpu_until(101, 2.9);
  recording.process(102, 100, 4, 4.2, 0.9);  // nobody looked
  const Ledger l = whole(recording.build());
  EXPECT_GE(of_task(l, Account::kStartup, "a") + of_task(l, Account::kStartup, "b"), 5 - 1e-6);
}

TEST(BatchLedger, WhatUsedLessCpuThanAProgramThatOpensTheDriverOwnsNoKernels) {
  const auto booked = [](Nanos cpu) {
    RecordingBuilder fresh(3);
    fresh.gpu(0, [](double t) { return t <= 1 ? 0.4 : 0.0; }).queue(0, 0);
    fresh.attempt({"short", 100, {0}, 0, 1, "failed", {.cpu_time = 6 * kMillisecond}});
    return whole(fresh.attempt({"sleep", 200, {0}, 0, 1.5, "succeeded", {.cpu_time = cpu}}).build());
  };
  EXPECT_NEAR(of_task(booked(kMillisecond), Account::kDiscarded, "short"), 0.4, 1e-6);
  EXPECT_EQ(of_task(booked(kMillisecond), Account::kUseful, "sleep"), 0);
  EXPECT_NEAR(of_task(booked(kMillisecond), Account::kNotUsed, "sleep"), 0.5, 1e-6) << "once alone";
  EXPECT_NEAR(of_task(booked(9 * kMillisecond), Account::kUseful, "sleep"), 0.2, 1e-6);
  const Ledger shared = booked(9 * kMillisecond);
  for (const LedgerEntry& entry : shared.entries)
    if (is_busy(entry.account)) {
      EXPECT_EQ(entry.confidence, Confidence::kLow);
    }
}

TEST(BatchLedger, AKilledBatchesLastAttemptsAreDiscarded) {
  Recording recording = RecordingBuilder(20)
                            .gpu(0, [](double) { return 1.0; })
                            .queue(0, 5)
                            .task("done", 100, {0}, 0, 12)
                            .task({"under way", 101, {0}, 12, 20, 0, ""})
                            .build();
  recording.meta.stop_reason = "recovered";
  const Ledger l = whole(recording);
  EXPECT_NEAR(of_task(l, Account::kDiscarded, "under way"), 8, 1e-6);
  EXPECT_NEAR(of_task(l, Account::kUseful, "done"), 12, 1e-6);
}

TEST(BatchLedger, AFullDiskEndsTheRecordingAndNotTheTasks) {
  Recording recording = RecordingBuilder(20)
                            .gpu(0, [](double) { return 1.0; })
                            .queue(0, 5)
                            .task("done", 100, {0}, 0, 12)
                            .task({"under way", 101, {0}, 12, 20, 0, ""})
                            .build();
  recording.meta.stop_reason = "disk_full";
  const Ledger l = whole(recording);
  EXPECT_NEAR(of_task(l, Account::kUnderWay, "under way"), 8, 1e-6);
  EXPECT_EQ(l.total(Account::kDiscarded), 0);
}

TEST(BatchLedger, WhatTheBatchCalledHungIsNoTearDown) {
  for (const bool listed : {true, false}) {
    RecordingBuilder builder(20);
    builder.gpu(0, [](double t) { return t <= 10 ? 1.0 : 0.0; }).queue(0, 0).process(100, 1, 0, 18, 0.0);
    if (listed) builder.context(100, 0, 0, 18);
    const Ledger l = whole(builder.attempt({"h", 100, {0}, 0, 18, "hung"}).build());
    EXPECT_NEAR(of_task(l, Account::kHung, "h"), 8, 1e-6);
    EXPECT_EQ(l.total(Account::kTeardown), 0);
  }
}

TEST(BatchLedger, ProcessNumbersThatMeanNothingHereAccuseNobody) {
  RecordingBuilder builder(40);
  builder.gpu(0, [](double) { return 0.9; }).process(7, 1, 0, 40, 0.9).context(31337, 0, 0, 40);
  builder.attempt("t", 7, {0}, 0, 40);
  const Ledger l = whole(builder.build());
  EXPECT_NEAR(of_task(l, Account::kUseful, "t"), 36, 1e-6);
  EXPECT_EQ(l.total(Account::kForeign), 0);
  EXPECT_EQ(l.total(Account::kNotUsed), 0);
}

TEST(BatchLedger, AnotherUsersKernelsStayTheirs) {
  RecordingBuilder builder(40);
  builder.gpu(0, [](double) { return 0.8; }).process({900, 1, 0, 40, 0.9, false}).context(900, 0, 0, 40);
  builder.task("t", 100, {0}, 0, 20);
  const Ledger l = whole(builder.build());
  EXPECT_NEAR(of_task(l, Account::kUseful, "t"), 8, 0.5);
  EXPECT_NEAR(total(l, Account::kForeign), 24, 0.5);
  EXPECT_NEAR(total(l, Account::kNoTask), 4, 0.5);
}

TEST(BatchLedger, ARunsRecordingKnowsNoTasks) {
  Recording recording = RecordingBuilder(20)
                            .gpu(0, [](double t) { return t <= 10 ? 1.0 : 0.0; })
                            .queue(0, 3)
                            .task({"a", 100, {0}, 0, 10, 0, "failed"})
                            .build();
  recording.meta.origin = "run";
  const Ledger l = whole(recording);
  EXPECT_EQ(l.total(Account::kTaskWaiting), 0);
  EXPECT_EQ(l.total(Account::kDiscarded), 0);
  EXPECT_TRUE(std::all_of(l.entries.begin(), l.entries.end(), [](const auto& entry) { return entry.task == -1; }));
}

// Measured in CPU time of this thread, the best of three: the machine may be busy.
TEST(BatchLedger, TimeGrowsWithTheTasksAndNotWithTheirSquare) {
  const auto cost = [](int tasks) {
    RecordingBuilder builder(tasks * 0.5);
    builder.gpu(0, [](double) { return 0.5; }).gpu(1, [](double) { return 0.5; });
    for (int i = 0; i < tasks; ++i) {
      const double from = 0.5 * i, to = std::min(from + 2.0, tasks * 0.5);
      if (i % 10 == 0)
        builder.task("t" + std::to_string(i), 100 + i, {i % 2}, from, to);
      else
        builder.attempt("t" + std::to_string(i), 100 + i, {i % 2}, from, to);
    }
    const Recording recording = builder.build();
    Nanos best = std::numeric_limits<Nanos>::max();
    for (int round = 0; round < 3; ++round) {
      const Nanos before = thread_cpu_now();
      EXPECT_EQ(whole(recording).budget(), 2 * (recording.meta.end - recording.meta.start));
      best = std::min(best, thread_cpu_now() - before);
    }
    return best;
  };
  const Nanos small = cost(1'000), large = cost(8'000);
  EXPECT_LT(large, 24 * small) << "eight times the tasks took "
                               << static_cast<double>(large) / static_cast<double>(small) << " times as long";
}

}  // namespace
}  // namespace headroom
