// SPDX-License-Identifier: Apache-2.0
#include "scheduler/planner.h"

#include <gmock/gmock.h>

#include "scheduler/packing.h"
#include "scheduler/testing/builders.h"

namespace headroom::scheduler {
namespace {

using ::testing::AllOf;
using testing::Batch;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kGib;
using ::testing::SizeIs;
using testing::task;

TEST(Packing, AnUnknownGroupStartsOneTaskPerGpuAndFillsWhenItIsKnown) {
  Batch batch(2);
  batch.add(20, task()).begin();
  EXPECT_THAT(batch.running, SizeIs(2));
  EXPECT_TRUE(batch.running.at(0).probe);
  batch.wait(kSecond).read(4 * kGib).wait(kSecond).read(5 * kGib);
  EXPECT_THAT(batch.running, SizeIs(2)) << "its memory still grows";
  batch.learn(5 * kGib);
  EXPECT_GT(batch.running.size(), 6u);
  EXPECT_FALSE(batch.running.rbegin()->second.probe);
}

TEST(Packing, AFirstTaskThatStandsStillLetsOthersJoinEachHeldToTakeAQuarter) {
  Batch batch;
  batch.add(20, task()).begin();
  for (int look = 0; look < 3; ++look) batch.wait(kSecond).read(2 * kGib);
  EXPECT_THAT(batch.running, SizeIs(1)) << "two looks since it grew to that";
  batch.wait(kSecond).read(2 * kGib);
  EXPECT_THAT(batch.running, SizeIs(3)) << "a quarter each: nothing shows yet what they will need";
  EXPECT_TRUE(batch.running.rbegin()->second.probe);
}

TEST(Packing, MemoryLimitsHowManyFit) {
  Batch batch;
  batch.add(20, task().memory(30 * kGib)).begin();
  EXPECT_THAT(batch.running, SizeIs(2));
  EXPECT_LE(batch.planner().gpu(0).counted_bytes, batch.planner().gpu(0).limit_bytes);
}

TEST(Packing, FullyUsedGpusTakeFewerThanIdleOnes) {
  Batch busy, idle;
  for (Batch* batch : {&busy, &idle}) batch->add(40, task()).begin();
  busy.learn(2 * kGib, 0.98);
  idle.learn(2 * kGib, 0.1);
  EXPECT_LE(busy.running.size(), 4u);
  EXPECT_GE(idle.running.size(), 10u);
}

TEST(Packing, AFixedNumberPerGpuIsKept) {
  Batch batch(2);
  batch.setup.pack = PackMode::kFixed;
  batch.setup.per_gpu = 3;
  batch.add(20, task()).begin();
  EXPECT_THAT(batch.running, SizeIs(6));
  batch.learn(50 * kGib, 0.99);
  EXPECT_THAT(batch.running, SizeIs(6));
}

TEST(Packing, NoPackMeansOneEach) {
  Batch batch(2);
  batch.setup.pack = PackMode::kOnePerGpu;
  batch.add(20, task()).begin().learn(kGib, 0.05);
  EXPECT_THAT(batch.running, SizeIs(2));
}

TEST(Packing, TheHostsCoresAreALimitButNotForTheFirstOnAGpu) {
  Batch few(2, 1);
  few.add(10, task().memory(kGib)).begin();
  EXPECT_THAT(few.running, SizeIs(2));
  Batch declared(1, 16);
  declared.add(10, task().memory(kGib).cpus(6)).begin();
  EXPECT_THAT(declared.running, SizeIs(2));
}

// A task of 1.4 s on two GPUs with two cores, as a sampler sees it that looks every half second and reads no CPU.
Batch after_a_short_task(AttemptEnded end) {
  Batch batch(2, 2);
  batch.add(40, task()).begin();
  for (const bool in_startup : {true, false}) {
    Readings seen;
    for (const auto& [task, start] : batch.running)
      seen.attempts.push_back({.attempt = start.attempt, .gpu_bytes = kGib, .in_startup = in_startup});
    batch.wait(500 * kMillisecond).tell(seen);
  }
  end.attempt = batch.running.at(0).attempt, end.peak_gpu_bytes = kGib, end.startup = kSecond;
  batch.wait(400 * kMillisecond).tell(end);
  return batch;
}

TEST(Packing, AShortTaskShowsItsCoresWhenItEnds) {
  EXPECT_THAT(after_a_short_task({.cpu_time = 1400 * kMillisecond}).running, SizeIs(3)) << "one core each";
  EXPECT_GT(after_a_short_task({.cpu_time = 50 * kMillisecond}).running.size(), 3u);
}

// Twenty tasks on two cores get a tenth of one each; that is no reason to start more.
TEST(Packing, AFullHostDoesNotMakeTasksLookSmall) {
  const auto running_after = [](bool wait_is_seen) {
    Batch batch(2, 2);
    batch.add(60, task().memory(kGib)).begin();
    for (int second = 0; second < 60; ++second) {
      Readings seen;
      const double share = std::min(1.0, 2.0 / static_cast<double>(batch.running.size()));
      for (const auto& [task, start] : batch.running) {
        AttemptReading reading{.attempt = start.attempt, .gpu_bytes = kGib, .cores = share, .in_startup = true};
        if (wait_is_seen) reading.cores_wanted = 1;
        seen.attempts.push_back(reading);
      }
      batch.wait(kSecond).tell(seen);
    }
    return batch.running.size();
  };
  EXPECT_EQ(running_after(true), 3u);
  EXPECT_GT(running_after(false), 3u) << "else this shows nothing";
}

// What others' load keeps from a core needs no more of it: a twentieth of its time on one, and half of it in wait.
TEST(Packing, WhoWaitsForOthersLoadNeedsNoWholeCore) {
  Batch batch(2, 2);
  batch.add(60, task().memory(kGib)).begin();
  for (int second = 0; second < 10; ++second) {
    Readings seen;
    for (const auto& [task, start] : batch.running)
      seen.attempts.push_back(
          {.attempt = start.attempt, .gpu_bytes = kGib, .cores = 0.05, .cores_wanted = 0.55, .in_startup = true});
    batch.wait(kSecond).tell(seen);
  }
  EXPECT_THAT(batch.running, SizeIs(8)) << "0.11 cores each, and as many kernels as tasks of which nothing is known";
}

// Half a second on a core at the start of 1.5: whatever phase a look finds such tasks in, each needs a third of one.
TEST(Packing, BriefTasksNeedCoresOnTheAverageOfTheirLives) {
  Batch batch(2, 2);
  batch.add(60, task().memory(kGib)).begin();
  EXPECT_THAT(batch.running, SizeIs(3)) << "nothing is known: a core each, and one and a half times as many";
  for (int i = 0; i < 4; ++i) {
    AttemptEnded end{.attempt = batch.running.begin()->second.attempt};
    end.cpu_time = 480 * kMillisecond, end.gpu_time = 50 * kMillisecond;
    batch.wait(1500 * kMillisecond).tell(end);
  }
  EXPECT_THAT(batch.running, SizeIs(8)) << "and as many kernels as tasks beside others of which nothing is known";
  EXPECT_LE(batch.planner().cores_counted(), 3);
}

// Memory that grows all along tells nothing of its end; a batch of such tasks is not kept to one at a time by it.
TEST(Packing, TasksThatGrowSlowlyDoNotWaitForTheEndOfTheFirst) {
  Batch batch(1);
  batch.add(30, task()).begin();
  std::size_t after_half_a_minute = 0;
  for (int second = 1; second <= 60; ++second) {
    batch.wait(kSecond).read(kGib + second * kGib / 30, 0.05);
    if (second < 6) {
      EXPECT_THAT(batch.running, SizeIs(1));
    }
    if (second == 30) after_half_a_minute = batch.running.size();
  }
  EXPECT_GE(after_half_a_minute, 8u) << "three times what it has, and 5 % of the GPU";
}

TEST(Packing, AShortTaskIsNotTakenForStartUpAlone) {
  EXPECT_LE(after_a_short_task({.cpu_time = kMillisecond}).running.size(), 20u) << "of 40: five to ten fill both GPUs";
}

TEST(Packing, HostMemoryIsALimit) {
  Batch batch;
  batch.setup.host.memory_bytes = 100 * kGib;
  batch.add(10, task().memory(kGib).host_memory(40 * kGib)).begin();
  EXPECT_THAT(batch.running, SizeIs(2));
}

TEST(Packing, AnotherUsersMemoryIsLeftAloneAndHasRoomToGrow) {
  Batch batch;
  batch.add(10, task().memory(20 * kGib)).begin();
  EXPECT_THAT(batch.running, SizeIs(3));
  batch.tell(Readings{.gpus = {{.gpu = 0, .others_bytes = 10 * kGib, .others_compute = true}}});
  batch.wait(kSecond).end(0).end(1);
  EXPECT_THAT(batch.running, SizeIs(1)) << "nothing is added while another user computes there";
  batch.tell(Readings{.gpus = {{.gpu = 0, .others_bytes = 0, .others_compute = false}}});
  EXPECT_THAT(batch.running, SizeIs(2)) << "a quarter stays free for a while";
  batch.wait(601 * kSecond).tell(Tick{});
  EXPECT_THAT(batch.running, SizeIs(3));
}

TEST(Failures, AMisplacedTaskWouldChooseItsGpuAgain) {
  Batch batch;
  batch.add(1, task().retries(3)).begin().wait(kSecond).end(0, AttemptOutcome::kMisplaced, 0, "computed elsewhere");
  ASSERT_TRUE(batch.ended.contains(0));
  EXPECT_EQ(batch.ended.at(0).state, TaskState::kFailed);
  EXPECT_EQ(batch.ended.at(0).reason, "on the wrong GPU: computed elsewhere");
}

TEST(Packing, WhatWasLearnedBeforeNeedsNoProbe) {
  Batch first;
  first.add(8, task()).begin().learn(5 * kGib).end(0, AttemptOutcome::kSucceeded, 5 * kGib);
  Batch second;
  second.setup.history = first.planner().learned();
  second.add(8, task()).begin();
  EXPECT_GT(second.running.size(), 2u);
  EXPECT_FALSE(second.running.at(0).probe);
}

TEST(OutOfMemory, TheVictimComesBackWithALargerReservationThenAloneThenFailsWithTheNumbers) {
  Batch batch;
  batch.add(6, task()).begin().learn(10 * kGib);
  ASSERT_GT(batch.running.size(), 3u);
  const std::int64_t before = batch.running.at(3).reserved_gpu_bytes;
  batch.end(3, AttemptOutcome::kGpuOutOfMemory, 12 * kGib);
  ASSERT_THAT(batch.all<RequeueTask>(), SizeIs(1));
  EXPECT_GE(batch.all<RequeueTask>()[0].reserved_gpu_bytes, before * 3 / 2);
  EXPECT_THAT(batch.ended, IsEmpty()) << "nothing else is lost";
  for (const TaskIndex other : batch.running_tasks())
    if (other != 3) batch.end(other, AttemptOutcome::kSucceeded, 10 * kGib);
  while (!batch.ended.contains(3)) {
    for (const TaskIndex other : batch.running_tasks())
      if (other != 3) batch.end(other, AttemptOutcome::kSucceeded, 10 * kGib);
    ASSERT_TRUE(batch.running.contains(3));
    batch.wait(kSecond).end(3, AttemptOutcome::kGpuOutOfMemory, 70 * kGib, "CUDA out of memory");
  }
  EXPECT_EQ(batch.ended.at(3).state, TaskState::kFailed);
  EXPECT_THAT(batch.ended.at(3).reason, AllOf(HasSubstr("70"), HasSubstr("alone"), HasSubstr("CUDA out of memory")));
  EXPECT_LE(std::count(batch.started.begin(), batch.started.end(), 3), 4);
}

TEST(OutOfMemory, SiblingsAreCountedHigherAfterwards) {
  Batch batch;
  batch.add(30, task()).begin().learn(10 * kGib, 0.05);
  const auto before = batch.planner().gpu(0).counted_bytes;
  batch.end(2, AttemptOutcome::kGpuOutOfMemory, 10 * kGib);
  EXPECT_GT(batch.planner().gpu(0).counted_bytes, before);
}

TEST(OutOfMemory, OfTheHostReservesHostMemory) {
  Batch batch;
  batch.setup.host.memory_bytes = 100 * kGib;
  batch.add(2, task().memory(kGib).host_memory(30 * kGib)).begin();
  batch.end(1, AttemptOutcome::kHostOutOfMemory, 0);
  EXPECT_TRUE(batch.running.contains(1)) << "30 + 45 of 95";
  batch.end(1, AttemptOutcome::kHostOutOfMemory, 0);
  EXPECT_FALSE(batch.running.contains(1)) << "30 + 67 do not fit";
  batch.end(0);
  EXPECT_TRUE(batch.running.contains(1));
}

TEST(Order, PrioritiesThenLongestThenAsGiven) {
  Batch batch;
  batch.setup.pack = PackMode::kOnePerGpu;
  batch.add(1, task().expected(10 * kSecond)).add(1, task().expected(30 * kSecond));
  batch.add(1, task().expected(30 * kSecond)).add(1, task().priority(1).expected(kSecond)).begin();
  while (!batch.planner().finished()) batch.wait(kSecond).end(batch.running_tasks().front());
  EXPECT_THAT(batch.started, ElementsAre(3, 1, 2, 0));
}

TEST(Order, DependenciesWaitAndAreSkippedWithAllThatFollowsWhenOneFails) {
  Batch batch;
  batch.add(1, task()).add(1, task().after({0})).add(1, task().after({1})).add(1, task()).begin();
  EXPECT_EQ(batch.planner().state(1), TaskState::kWaiting);
  batch.end(0, AttemptOutcome::kFailed, 0, "exit status 3");
  EXPECT_EQ(batch.planner().state(0), TaskState::kFailed);
  EXPECT_THAT(batch.ended.at(0).reason, HasSubstr("exit status 3"));
  EXPECT_EQ(batch.planner().state(2), TaskState::kSkipped);
  batch.end(3);
  EXPECT_TRUE(batch.planner().finished());
  EXPECT_EQ(batch.planner().counts().skipped, 2);
}

TEST(Order, AWholeGroupMustSucceedFirst) {
  Batch batch;
  batch.add(3, task().group(0).memory(kGib)).add(2, task().group(1).after_group(0)).begin();
  EXPECT_THAT(batch.running_tasks(), ElementsAre(0, 1, 2));
  batch.end(0).end(1);
  EXPECT_EQ(batch.planner().state(3), TaskState::kWaiting);
  batch.end(2);
  EXPECT_TRUE(batch.running.contains(3));
}

TEST(Order, AGroupsLimitIsKept) {
  Batch batch(2);
  batch.limits = {{0, 1}};
  batch.add(4, task().memory(kGib)).add(2, task().memory(kGib).group(1)).begin();
  EXPECT_THAT(batch.running_tasks(), ElementsAre(0, 4, 5));
  batch.end(0);
  EXPECT_THAT(batch.running_tasks(), ElementsAre(1, 4, 5));
}

TEST(Order, TasksOnSlotsAndOnGpusDoNotBlockEachOther) {
  Batch batch(1);
  batch.setup.slots = 3;
  batch.add(5, task().gpus(0).group(0)).add(3, task().memory(60 * kGib).group(1)).begin();
  EXPECT_THAT(batch.running_tasks(), ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(batch.gpus_of(0), IsEmpty());
  EXPECT_THAT(batch.gpus_of(5), ElementsAre(0));
}

TEST(Order, ATaskForAllGpusIsNotStarvedBySmallOnes) {
  Batch batch(2);
  batch.add(8, task().memory(10 * kGib)).add(1, task().gpus(2).priority(0)).add(60, task().memory(10 * kGib)).begin();
  int ends = 0;
  while (!batch.running.contains(8)) {
    ASSERT_LT(++ends, 40) << "the small ones behind it must not be started for ever";
    batch.wait(kSecond).end(batch.running_tasks().front());
  }
  EXPECT_THAT(batch.gpus_of(8), ElementsAre(0, 1));
  EXPECT_THAT(batch.running, SizeIs(1)) << "all or nothing, and alone";
}

TEST(Order, WhileItWaitsTasksThatSurelyEndInTimeRun) {
  Batch batch(2);
  batch.setup.pack = PackMode::kOnePerGpu;
  batch.add(1, task().priority(2).expected(100 * kSecond)).add(1, task().priority(1).gpus(2).expected(50 * kSecond));
  batch.add(1, task().expected(90 * kSecond)).add(1, task().expected(20 * kSecond)).begin();
  EXPECT_THAT(batch.running_tasks(), ElementsAre(0, 3)) << "90 s with a margin is too long, 20 s is not";
}

TEST(Order, OneThatWasOvertakenTooOftenIsGivenWay) {
  Batch blocked(1);
  blocked.add(3, task().priority(1).memory(20 * kGib)).add(1, task().group(1).memory(70 * kGib));
  blocked.add(400, task().memory(20 * kGib)).begin();
  int ends = 0;
  while (!blocked.running.contains(3)) {
    ASSERT_LT(++ends, 100);
    blocked.wait(kSecond).end(blocked.running_tasks().front());
  }
  EXPECT_GT(ends, 3);
}

TEST(Attempts, RetriesWaitLongerEachTimeAndThenTheTaskHasFailed) {
  Batch batch;
  batch.add(1, task().retries(2)).begin();
  batch.end(0, AttemptOutcome::kFailed);
  EXPECT_EQ(batch.planner().state(0), TaskState::kBackingOff);
  EXPECT_EQ(batch.planner().next_wake(), batch.now + kSecond);
  batch.wait(kSecond).tell(Tick{}).end(0, AttemptOutcome::kFailed);
  EXPECT_EQ(batch.planner().next_wake(), batch.now + 2 * kSecond);
  batch.wait(2 * kSecond).tell(Tick{});
  EXPECT_EQ(batch.running.at(0).number, 3);
  batch.end(0, AttemptOutcome::kFailed);
  EXPECT_EQ(batch.ended.at(0).state, TaskState::kFailed);
  EXPECT_THAT(batch.ended.at(0).reason, HasSubstr("3 attempts"));
}

TEST(Attempts, ATimeoutStopsAndCountsAsAFailure) {
  Batch batch;
  batch.add(1, task().timeout(60 * kSecond)).begin().tell(AttemptStarted{1});
  batch.wait(60 * kSecond).tell(Tick{});
  ASSERT_THAT(batch.all<StopAttempt>(), SizeIs(1));
  EXPECT_EQ(batch.all<StopAttempt>()[0].reason, StopReason::kTimedOut);
  batch.wait(kSecond).tell(Tick{});
  EXPECT_THAT(batch.actions, IsEmpty()) << "asked once";
  batch.end(0, AttemptOutcome::kFailed);
  EXPECT_THAT(batch.ended.at(0).reason, HasSubstr("timed out"));
}

TEST(Attempts, OneThatDoesNothingIsHungAndOneThatReadsIsNot) {
  for (const bool reads : {false, true}) {
    Batch batch;
    batch.add(1, task().hang_timeout(30 * kSecond)).begin();
    std::int64_t io = 0;
    std::size_t stops = 0;
    for (int s = 0; s < 60; ++s) {
      io += reads ? 4096 : 0;
      batch.wait(kSecond).tell(
          Readings{.attempts = {{.attempt = 1, .gpu_util_ratio = 0.0, .cores = 0.0, .io_bytes = io}}});
      stops += batch.all<StopAttempt>().size();
    }
    EXPECT_EQ(stops, reads ? 0u : 1u);
  }
}

TEST(Attempts, TimeInWhichNobodyLookedIsNoHang) {
  Batch batch;
  batch.add(1, task().hang_timeout(30 * kSecond)).begin();
  const auto look = [&](std::optional<double> cores) {
    batch.tell(Readings{.attempts = {{.attempt = 1, .cores = cores}}});
    return batch.all<StopAttempt>().size();
  };
  for (int s = 0; s < 60; ++s) EXPECT_EQ((batch.wait(kSecond), look(std::nullopt)), 0u) << "nothing can be read";
  EXPECT_EQ((batch.wait(kSecond), look(0.0)), 0u);
  batch.wait(3600 * kSecond).tell(Tick{});
  EXPECT_THAT(batch.all<StopAttempt>(), IsEmpty()) << "the machine was asleep";
  EXPECT_EQ(look(0.0), 0u) << "and so was the task";
  std::size_t stops = 0;
  for (int s = 0; s < 30; ++s) stops += (batch.wait(kSecond), look(0.0));
  EXPECT_EQ(stops, 1u);
}

TEST(Attempts, SuccessIsBelievedEvenAfterAStop) {
  Batch batch;
  batch.add(1, task().timeout(kSecond)).begin().wait(2 * kSecond).tell(Tick{}).end(0);
  EXPECT_EQ(batch.ended.at(0).state, TaskState::kSucceeded);
}

TEST(Attempts, LateReportsAreIgnored) {
  Batch batch;
  batch.add(1, task()).begin().end(0);
  batch.tell(AttemptEnded{.attempt = 1}).tell(AttemptEnded{.attempt = 77}).tell(CancelTask{5}).tell(GpuLost{9, ""});
  EXPECT_THAT(batch.actions, IsEmpty());
  EXPECT_EQ(batch.planner().counts().succeeded, 1);
}

TEST(LostGpu, ItsTasksMoveItIsNotUsedAndItIsNotTheirFault) {
  Batch batch(2);
  batch.setup.pack = PackMode::kOnePerGpu;
  batch.add(4, task()).begin().tell(GpuLost{0, "fell off the bus"});
  ASSERT_THAT(batch.all<QuarantineGpu>(), SizeIs(1));
  ASSERT_THAT(batch.all<StopAttempt>(), SizeIs(1));
  batch.end(0, AttemptOutcome::kFailed);
  EXPECT_EQ(batch.all<CloseAttempt>()[0].outcome, AttemptOutcome::kDeviceLost);
  EXPECT_EQ(batch.planner().state(0), TaskState::kReady);
  batch.end(1);
  EXPECT_THAT(batch.gpus_of(0), ElementsAre(1));
  batch.tell(GpuBack{0});
  EXPECT_THAT(batch.gpus_of(2), ElementsAre(0));
}

TEST(LostGpu, OneThatEatsTasksIsQuarantined) {
  Batch batch(2);
  batch.setup.pack = PackMode::kOnePerGpu;
  batch.add(60, task().retries(3)).begin();
  std::vector<QuarantineGpu> quarantined;
  for (int i = 0; i < 40 && quarantined.empty(); ++i) {
    for (const TaskIndex t : batch.running_tasks()) {
      const bool bad = batch.gpus_of(t).front() == 0;
      batch.wait(kSecond).end(t, bad ? AttemptOutcome::kFailed : AttemptOutcome::kSucceeded);
      for (const auto& one : batch.all<QuarantineGpu>()) quarantined.push_back(one);
    }
  }
  ASSERT_THAT(quarantined, SizeIs(1));
  EXPECT_EQ(quarantined[0].gpu, 0);
  EXPECT_THAT(quarantined[0].reason, HasSubstr("elsewhere"));
}

TEST(LostGpu, WithNoneLeftTheBatchEndsAndTheRestIsLeftForAResume) {
  Batch batch(1);
  batch.add(3, task().memory(60 * kGib)).begin().tell(GpuLost{0, "lost"}).end(0, AttemptOutcome::kFailed);
  EXPECT_TRUE(batch.planner().finished());
  EXPECT_EQ(batch.planner().counts().ready, 3);
  EXPECT_THAT(batch.planner().why_waiting(), HasSubstr("0 of 1"));
}

TEST(Ending, ADrainFinishesWhatRunsAndStartsNothing) {
  Batch batch(1);
  batch.add(9, task().memory(30 * kGib)).begin().tell(Drain{});
  EXPECT_THAT(batch.all<StopAttempt>(), IsEmpty());
  batch.end(0).end(1);
  EXPECT_THAT(batch.running, IsEmpty());
  EXPECT_TRUE(batch.planner().finished());
  EXPECT_EQ(batch.planner().counts().ready, 7);
}

TEST(Ending, AStopStopsWhatRunsAndLeavesItToAResume) {
  Batch batch(1);
  batch.add(9, task().memory(30 * kGib)).begin().tell(Stop{});
  EXPECT_THAT(batch.all<StopAttempt>(), SizeIs(2));
  batch.end(0, AttemptOutcome::kFailed).end(1, AttemptOutcome::kFailed);
  EXPECT_TRUE(batch.planner().finished());
  EXPECT_THAT(batch.ended, IsEmpty());
}

TEST(Ending, ACancelledTaskAndWhatFollowsItEnd) {
  Batch batch(1);
  batch.add(1, task().memory(70 * kGib)).add(1, task().memory(70 * kGib)).add(1, task().after({1})).begin();
  batch.tell(CancelTask{1});
  EXPECT_EQ(batch.planner().state(1), TaskState::kCancelled);
  EXPECT_EQ(batch.planner().state(2), TaskState::kSkipped);
  batch.tell(CancelTask{0});
  ASSERT_THAT(batch.all<StopAttempt>(), SizeIs(1));
  batch.end(0, AttemptOutcome::kFailed);
  EXPECT_EQ(batch.ended.at(0).state, TaskState::kCancelled);
  EXPECT_TRUE(batch.planner().finished());
}

TEST(Ending, WhatCannotRunHereFailsAtOnceAndSaysWhy) {
  Batch batch(2);
  batch.add(1, task().gpus(4)).add(1, task().memory(100 * kGib)).add(1, task().cpus(64)).begin();
  EXPECT_THAT(batch.ended.at(0).reason, HasSubstr("4 GPUs, and this batch has 2"));
  EXPECT_THAT(batch.ended.at(1).reason, HasSubstr("the largest GPU has 80"));
  EXPECT_THAT(batch.ended.at(2).reason, HasSubstr("64 cores"));
  EXPECT_TRUE(batch.planner().finished());
}

TEST(Resume, EndedTasksCountForThoseThatComeAfterThem) {
  Batch batch(1);
  batch.setup.first_attempt = 50;
  batch.add(1, task().already(TaskState::kSucceeded)).add(1, task().after({0}).group(1));
  batch.add(1, task().already(TaskState::kSucceeded)).add(1, task().after_group(0).group(1)).begin();
  EXPECT_THAT(batch.running_tasks(), ElementsAre(1)) << "one probe";
  EXPECT_EQ(batch.running.at(1).attempt, 50u);
  batch.end(1).end(3);
  EXPECT_TRUE(batch.planner().finished());
  EXPECT_FALSE(batch.ended.contains(0)) << "it ended in the batch before";
}

// Of tasks whose use of a GPU is known, so many that one more would add too little.
std::size_t packed(bool space_sharing) {
  Batch batch(1, 64);
  batch.setup.space_sharing = space_sharing;
  batch.setup.history = {
      {.group = 0, .gpu_model = "Model", .finished = 9, .peak_gpu_bytes = kGib, .gpu_util_ratio = 0.3, .cores = 0.1}};
  batch.add(200, task()).begin();
  return batch.running.size();
}

TEST(Planner, WhereKernelsTakeTurnsAGpuTakesTasksUntilOneMoreAddsTooLittle) {
  const std::size_t running = packed(false);
  const auto rate = [](std::size_t tasks) { return work_rate(std::vector<double>(tasks, 0.3), 1); };
  EXPECT_GE(rate(running) / rate(running - 1), kWorthItByTurns);
  EXPECT_LT(rate(running + 1) / rate(running), kWorthItByTurns);
  EXPECT_LT(packed(true), running) << "too many are dearer under space sharing";
}

}  // namespace
}  // namespace headroom::scheduler
