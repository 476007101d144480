// SPDX-License-Identifier: Apache-2.0
#include "batch/batch.h"

#include <gmock/gmock.h>

#include <csignal>

#include "batch/batch_testing.h"
#include "model/events.h"
#include "model/thresholds.h"

namespace headroom::batch {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kGib;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;
using testing::task;
using testing::World;

constexpr Nanos kMustBeSeen = Thresholds().time(Threshold::kMustBeSeen);
constexpr ExitStatus kFailed{.code = 1};
constexpr ExitStatus kTerminated{.signal = SIGTERM};

TEST(Batch, EveryTaskRunsAndIsClosedInTheJournal) {
  World world;
  world.with(task("a")).with(task("b")).begin();
  EXPECT_THAT(world.started(), ElementsAre(1));
  world.exit(1);
  EXPECT_THAT(world.started(), ElementsAre(1, 2));
  world.exit(2);
  ASSERT_TRUE(world.batch->done());
  const BatchEnd end = world.batch->end();
  EXPECT_EQ(end.reason, "finished");
  EXPECT_EQ(end.summary.tasks.succeeded, 2);
  EXPECT_THAT(world.journal.ended, SizeIs(2));
  EXPECT_FALSE(world.journal.pending());
}

TEST(Batch, WhatATaskIsGivenIsFilledIn) {
  World world(2);
  world.with(task("a")).with(task("b")).begin();
  ASSERT_THAT(world.executor.started, SizeIs(2));
  const Launch& second = world.executor.started[1];
  EXPECT_THAT(second.argv, ElementsAre("train", "--gpu=1"));
  EXPECT_THAT(second.environment, Contains(Pair("CUDA_VISIBLE_DEVICES", "GPU-1")));
}

TEST(Batch, NothingStartsThatIsNotWrittenDown) {
  World world;
  world.journal.full = true;
  world.with(task("a")).begin();
  world.pass(10 * kSecond);
  EXPECT_THAT(world.executor.started, IsEmpty());
  EXPECT_THAT(world.said, ElementsAre(HasSubstr("nothing more is started")));
  world.journal.full = false;
  world.pass(2 * kSecond);
  EXPECT_THAT(world.started(), ElementsAre(1));
  EXPECT_THAT(world.said.back(), HasSubstr("can be written again"));
}

TEST(Batch, NothingStartsThatCannotPrint) {
  World world;
  world.executor.room_left = Room::kTooFewBytes;
  world.with(task("a")).begin();
  world.pass(3 * kSecond);
  EXPECT_THAT(world.executor.started, IsEmpty());
  EXPECT_THAT(world.said, ElementsAre(HasSubstr("disk of")));
  const BatchProgress progress = world.batch->progress();
  EXPECT_THAT(progress.waiting_for, HasSubstr("until there is room on the disk of"));
  EXPECT_EQ(progress.tasks.running, 0);
  for (const auto& gpu : progress.gpus) EXPECT_EQ(gpu.running, 0U) << "it has a place, and does not run";
  world.executor.room_left = Room::kEnough;
  world.pass(2 * kSecond);
  EXPECT_THAT(world.started(), ElementsAre(1));
  EXPECT_EQ(world.batch->progress().waiting_for, "");
  EXPECT_EQ(world.batch->progress().gpus.front().running, 1U);
}

TEST(Batch, EndsWhereItsFolderWasRemoved) {
  World world;
  world.options.planner.slots = 1;
  world.with(task("a")).with(task("b")).with(task("c")).begin();
  EXPECT_THAT(world.started(), ElementsAre(1));
  world.executor.room_left = Room::kNoFolder;
  world.exit(1);
  world.pass(2 * kSecond);
  EXPECT_THAT(world.started(), ElementsAre(1));
  EXPECT_TRUE(world.batch->done());
  EXPECT_EQ(world.batch->end().reason, "drained");
  EXPECT_EQ(world.batch->end().summary.tasks.succeeded, 1);
  EXPECT_THAT(world.said,
              ElementsAre(HasSubstr("was removed while the batch runs"), HasSubstr("nothing more is started")));
}

TEST(Batch, WhatTheBoxRefusesToStartIsTriedAgainAndAgain) {
  World world;
  world.executor.answers_at_once = false;
  world.with(task("a")).begin();
  for (AttemptId id = 1; id <= 8; ++id) {  // pauses of 1, 2, 4, 8, 16, 30, 30 and 30 s
    world.executor.refuse(id, "cannot run 'train': Resource temporarily unavailable", true);
    world.batch->wake();
    const auto pause = std::min<Nanos>(kSecond << (id - 1), 30 * kSecond);
    world.pass(pause - kMillisecond);
    EXPECT_EQ(world.executor.started.size(), id) << "not before the pause is over";
    world.pass(2 * kMillisecond);
    EXPECT_EQ(world.executor.started.size(), id + 1);
  }
  world.executor.run(9);
  world.batch->wake();
  world.exit(9);
  EXPECT_EQ(world.batch->end().summary.tasks.succeeded, 1);
  EXPECT_EQ(world.batch->end().summary.tasks.failed, 0);
  EXPECT_THAT(world.said, ElementsAre(HasSubstr("no fault of the task")));
}

TEST(Batch, AnEndMakesRoomForAStartThatWasRefused) {
  World world;
  world.options.planner.slots = 2;
  for (const char* name : {"a", "b"}) {
    TaskSpec spec = task(name);
    spec.resources.gpus = 0;
    spec.argv = {"train"};
    world.with(spec);
  }
  world.executor.answers_at_once = false;
  world.begin();
  ASSERT_THAT(world.started(), ElementsAre(1, 2));
  world.executor.run(1);
  world.executor.refuse(2, "no process", true);
  world.batch->wake();
  EXPECT_EQ(world.batch->progress().tasks.running, 1) << "what waits for its start does not run";
  EXPECT_EQ(world.batch->progress().tasks.ready, 1);
  world.exit(1);
  EXPECT_THAT(world.started(), ElementsAre(1, 2, 3));
}

TEST(Batch, ManyEndsWithinOnePauseDoNotLengthenIt) {
  World world;
  world.options.planner.slots = 6;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"}) {
    TaskSpec spec = task(name);
    spec.resources.gpus = 0;
    world.with(spec);
  }
  world.executor.answers_at_once = false;
  world.begin();
  ASSERT_EQ(world.executor.started.size(), 6U);
  for (AttemptId id = 1; id <= 6; ++id) world.executor.run(id);
  world.batch->wake();
  for (AttemptId id = 1; id <= 5; ++id) {  // each end lets the last task try again, and the box refuses it
    world.exit(id);
    const auto tried = static_cast<AttemptId>(world.executor.started.size());
    ASSERT_EQ(tried, 6 + id);
    world.executor.refuse(tried, "no room", true);
    world.batch->wake();
  }
  world.pass(kSecond + kMillisecond);
  EXPECT_EQ(world.executor.started.size(), 12U) << "tried again after the first pause, not after five of them";
}

TEST(Batch, AReadingThatHangsHoldsUpNobodyElse) {
  World world(2);
  TaskSpec other = task("b");
  other.timeout = 3 * kSecond;
  world.with(task("a")).with(other).begin();
  ASSERT_THAT(world.started(), ElementsAre(1, 2));
  world.executor.hangs = true;
  world.exit(1);
  EXPECT_THAT(world.executor.readings, ElementsAre(1));
  world.pass(4 * kSecond);
  EXPECT_THAT(world.executor.stops, ElementsAre(Pair(2, StopHow::kGently)));
  EXPECT_THAT(world.journal.ended, IsEmpty());
  world.executor.give_up_reading(1);
  world.batch->wake();
  ASSERT_EQ(world.journal.ended.size(), 1U);
  EXPECT_EQ(world.journal.ended.front().outcome, AttemptOutcome::kSucceeded);
  EXPECT_THAT(world.said, Contains(HasSubstr("a: reading what it printed took too long")));
}

TEST(Batch, ATaskUnderWayInThreeRunsThatDiedComesLast) {
  World world;
  world.with(task("poison")).with(task("b")).with(task("c"));
  world.begin({{.attempts = 3, .in_flight = true, .deaths = 3}, {.attempts = 2, .in_flight = true, .deaths = 2}, {}});
  EXPECT_THAT(world.said, ElementsAre(HasSubstr("poison: it was under way in 3 runs")));
  for (AttemptId id = 1; id <= 2; ++id) world.exit(id);
  world.exit(3);
  ASSERT_EQ(world.journal.tasks.size(), 3U);
  EXPECT_EQ(world.journal.tasks.back().key, 1);
}

TEST(Batch, AnOutputThatIsNotThereIsAFailure) {
  World world;
  TaskSpec spec = task("a");
  spec.outputs = {"model.pt"};
  world.options.missing_outputs = [](const TaskSpec& one) { return one.outputs; };
  world.with(spec).begin();
  world.exit(1);
  ASSERT_TRUE(world.batch->done());
  EXPECT_EQ(world.batch->end().summary.tasks.failed, 1);
  EXPECT_THAT(world.said, ElementsAre(HasSubstr("it left no model.pt")));
}

TEST(Batch, AFailureIsTriedAgainAfterItsBackoff) {
  World world;
  TaskSpec spec = task("a");
  spec.retry.retries = 1;
  world.with(spec).begin();
  world.exit(1, kFailed);
  EXPECT_THAT(world.started(), ElementsAre(1));
  world.pass(kSecond + 2 * kMillisecond);
  EXPECT_THAT(world.started(), ElementsAre(1, 2));
  world.exit(2, kFailed);
  ASSERT_TRUE(world.batch->done());
  EXPECT_EQ(world.batch->end().summary.retries, 1);
  EXPECT_EQ(world.batch->end().summary.tasks.failed, 1);
  EXPECT_THAT(world.said, ElementsAre(HasSubstr("runs again in 1"), HasSubstr("(2 attempts)")));
}

TEST(Batch, WhatRanOutOfGpuMemoryComesBackWithMoreRoom) {
  World world;
  TaskSpec spec = task("a");
  spec.resources.gpu_memory_bytes = 4 * kGib;
  world.options.planner.pack = scheduler::PackMode::kPack;
  world.with(spec).with(task("other", "h")).begin();
  world.executor.output[1] = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB";
  world.exit(1, kFailed);
  EXPECT_EQ(world.journal.ended.front().outcome, AttemptOutcome::kGpuOutOfMemory);
  EXPECT_THAT(world.said, ElementsAre(HasSubstr("out of GPU memory, ")));
  world.pass(kSecond);
  EXPECT_EQ(world.batch->progress().tasks.failed, 0);
  EXPECT_EQ(world.batch->end().summary.oom_requeues, 1);
}

TEST(Batch, AKilledTaskWasShortOfHostMemoryIfTheKernelCountsIt) {
  World world;
  world.with(task("a")).begin();
  world.exit(1, {.signal = SIGKILL}, 1);
  EXPECT_EQ(world.journal.ended.front().outcome, AttemptOutcome::kHostOutOfMemory);
}

TEST(Batch, ALostGpuIsNotTheTasksFault) {
  World world(2);
  world.with(task("a")).with(task("b")).begin();
  world.where = {{1, 0}, {2, 1}};
  world.pass(kSecond, true);
  world.exit(1, kFailed);                       // its GPU has gone, which nobody knows yet
  EXPECT_THAT(world.journal.ended, IsEmpty());  // so it waits for the next look
  world.lost = {World::uuid(0)};
  world.pass(kSecond, true);
  ASSERT_THAT(world.journal.ended, SizeIs(1));
  EXPECT_EQ(world.journal.ended.front().outcome, AttemptOutcome::kDeviceLost);
  world.exit(2).exit(3);
  EXPECT_EQ(world.batch->end().summary.tasks.succeeded, 2);
  EXPECT_EQ(world.executor.started[2].environment, world.executor.started[1].environment);  // on the GPU that is left
}

TEST(Batch, TheRecordingHearsWhenAnAttemptEndedAndNotWhenThatWasJudged) {
  World world;
  world.with(task("a")).begin();
  world.where = {{1, 0}};
  world.pass(kSecond, true);
  const Nanos ended = world.clock.now;
  world.exit(1, kFailed);
  world.pass(kSecond, true);  // the look that it waited for
  ASSERT_EQ(world.recorder.events.back().kind, "attempt_end");
  EXPECT_EQ(world.recorder.events.back().at, ended);
}

TEST(Batch, AFailureOnAGpuIsJudgedWithoutALookIfNoneComes) {
  World world;
  world.with(task("a")).begin();
  world.look().exit(1, kFailed);
  EXPECT_THAT(world.journal.ended, IsEmpty());
  world.pass(5 * kSecond);
  ASSERT_THAT(world.journal.ended, SizeIs(1));
  EXPECT_EQ(world.journal.ended.front().outcome, AttemptOutcome::kFailed);
}

TEST(Batch, CtrlCLetsWhatRunsEnd) {
  World world;
  world.with(task("a")).with(task("b")).begin();
  world.batch->interrupt(SIGINT);
  EXPECT_THAT(world.said, ElementsAre(HasSubstr("1 running task may finish")));
  EXPECT_THAT(world.executor.stops, IsEmpty());
  world.exit(1);
  ASSERT_TRUE(world.batch->done());
  EXPECT_EQ(world.batch->end().reason, "drained");
  EXPECT_EQ(world.batch->end().signal, SIGINT);
  EXPECT_EQ(world.batch->end().summary.tasks.left, 1);
}

TEST(Batch, CtrlCTwiceStopsAndThriceKills) {
  World world;
  world.with(task("a")).begin();
  world.batch->interrupt(SIGINT);
  world.batch->interrupt(SIGINT);
  EXPECT_THAT(world.executor.stops, ElementsAre(Pair(1, StopHow::kGently)));
  world.batch->interrupt(SIGINT);
  EXPECT_THAT(world.executor.stops, ElementsAre(Pair(1, StopHow::kGently), Pair(1, StopHow::kAtOnce)));
  world.exit(1, {.signal = SIGKILL});
  EXPECT_EQ(world.batch->end().reason, "stopped");
  EXPECT_EQ(world.journal.ended.front().outcome, AttemptOutcome::kInterrupted);
  EXPECT_THAT(world.journal.tasks, IsEmpty());  // it runs again at the next resume
}

TEST(Batch, WhatWasOnItsWayWhenTheBatchEndedIsClosedAsInterrupted) {
  World world;
  world.executor.room_left = Room::kTooFewBytes;
  world.with(task("a")).begin();
  world.batch->interrupt(SIGINT);
  ASSERT_TRUE(world.batch->done());
  EXPECT_EQ(world.journal.ended.front().outcome, AttemptOutcome::kInterrupted);
}

TEST(Batch, AStartMayBeAnsweredMuchLater) {
  World world;
  world.executor.answers_at_once = false;
  TaskSpec spec = task("a");
  spec.timeout = 60 * kSecond;
  world.with(spec).begin();
  world.pass(30 * kSecond);
  EXPECT_THAT(world.batch->progress().running, IsEmpty());
  world.executor.run(1);
  world.pass(59 * kSecond);
  EXPECT_THAT(world.executor.stops, IsEmpty());  // the time in a queue is not the task's
  world.pass(2 * kSecond);
  EXPECT_THAT(world.executor.stops, ElementsAre(Pair(1, StopHow::kGently)));
  world.exit(1, kTerminated);
  EXPECT_EQ(world.journal.ended.front().outcome, AttemptOutcome::kTimedOut);
}

TEST(Batch, WhatCannotBeStartedFailsWithTheReason) {
  World world;
  world.executor.answers_at_once = false;
  world.with(task("a")).begin();
  world.executor.refuse(1, "train: no such program");
  world.batch->wake();
  EXPECT_EQ(world.journal.ended.front().outcome, AttemptOutcome::kNotStarted);
  EXPECT_EQ(world.batch->end().summary.unseen, 0) << "it was not too short to be seen";
  const auto& told = world.recorder.events;
  EXPECT_TRUE(std::any_of(told.begin(), told.end(), [](const Event& event) {
    const auto ended = of_event<events::AttemptEnd>(event);
    return ended && ended->outcome == AttemptOutcome::kNotStarted;
  })) << "the recording does not know of it";
  EXPECT_THAT(world.journal.tasks.front().reason, HasSubstr("no such program"));
}

TEST(Batch, WhatComesAfterAFailureIsSkipped) {
  World world;
  TaskSpec next = task("b", "h");
  next.after = {"a"};
  world.with(task("a")).with(next).begin();
  world.exit(1, kFailed);
  ASSERT_TRUE(world.batch->done());
  EXPECT_EQ(world.batch->end().summary.tasks.skipped, 1);
  EXPECT_THAT(world.started(), ElementsAre(1));
}

TEST(Batch, EnoughFailuresEndTheBatch) {
  World world;
  world.options.max_failures = 1;
  world.with(task("a")).with(task("b")).begin();
  world.exit(1, kFailed);
  ASSERT_TRUE(world.batch->done());
  EXPECT_THAT(world.said, Contains(HasSubstr("as many as --max-failures allows")));
  EXPECT_EQ(world.batch->end().summary.tasks.left, 1);
}

TEST(Batch, AResumeRunsWhatHasNotSucceededAndGoesOnCounting) {
  World world;
  world.journal.first = 8;
  world.with(task("done")).with(task("died"));
  world.begin({{.state = TaskState::kSucceeded, .attempts = 1}, {.attempts = 1, .in_flight = true}});
  EXPECT_THAT(world.started(), ElementsAre(8));
  world.exit(8);
  EXPECT_EQ(world.journal.ended.front().number, 2);
  EXPECT_EQ(world.batch->end().summary.tasks.succeeded, 2);
  EXPECT_THAT(world.batch->end().summary.rerun_after_crash, ElementsAre("died"));
}

TEST(Batch, ATaskThatIsCancelledIsStoppedAndNotTriedAgain) {
  World world;
  TaskSpec spec = task("a");
  spec.retry.retries = 5;
  world.with(spec).begin();
  EXPECT_FALSE(world.batch->cancel({"b"}));
  ASSERT_TRUE(world.batch->cancel({"a"}));
  EXPECT_THAT(world.executor.stops, ElementsAre(Pair(1, StopHow::kGently)));
  world.exit(1, kTerminated);
  ASSERT_TRUE(world.batch->done());
  EXPECT_EQ(world.batch->end().summary.tasks.cancelled, 1);
}

TEST(Batch, StepsThatNobodyNamedAreKeptAndDecideNothing) {
  for (const bool only_kept : {false, true}) {
    World world;
    TaskSpec spec = task("a");
    spec.hang_timeout = 10 * kSecond;
    world.options.count_steps = [](const Attempt&) { return std::optional(5.0); };
    world.options.steps_only_kept = only_kept;
    world.with(spec).begin().pass(60 * kSecond, true);
    EXPECT_EQ(world.executor.stops.empty(), only_kept) << "of all that tells of progress only steps are read";
    world.exit(1);
    ASSERT_FALSE(world.journal.ended.empty());
    EXPECT_EQ(world.journal.ended.back().steps, 5);
  }
}

TEST(Batch, WhatWasSeenOnItsGpuIsVerified) {
  World world;
  world.with(task("a")).begin();
  world.where = {{1, 0}};
  world.pass(5 * kSecond, true).exit(1);
  EXPECT_EQ(world.batch->end().summary.verified, 1);
  EXPECT_EQ(world.journal.ended.front().peak_gpu_bytes, 2 * kGib);
  EXPECT_NEAR(seconds(*world.journal.ended.front().gpu_time), 2.5, 0.3);
}

TEST(Batch, WhatComputesOnAnotherGpuIsToldAndStoppedIfWished) {
  World world(2);
  world.options.stop_misplaced = true;
  world.with(task("a")).begin();
  world.where = {{1, 1}};
  world.pass(kSecond, true);
  EXPECT_THAT(world.said, ElementsAre(HasSubstr("computes on GPU 1, but was given GPU 0")));
  EXPECT_THAT(world.executor.stops, ElementsAre(Pair(1, StopHow::kGently)));
  world.exit(1, kTerminated);
  EXPECT_EQ(world.journal.ended.front().outcome, AttemptOutcome::kMisplaced);
  EXPECT_EQ(world.journal.ended.front().proof, PlacementProof::kMisplaced);
  EXPECT_THAT(world.batch->end().summary.misplaced,
              ElementsAre(Field(&BatchSummary::Misplaced::found, World::uuid(1))));
}

TEST(Batch, WhatRanLongAndWasNeverOnAGpuFellBackToTheCpu) {
  World world;
  world.with(task("a")).begin();
  world.pass(kMustBeSeen, true).exit(1);
  EXPECT_EQ(world.journal.ended.front().proof, PlacementProof::kCpuFallback);
  EXPECT_THAT(world.batch->end().cpu_fallbacks, ElementsAre("a"));
}

TEST(Batch, WhatWasTooShortToBeSeenIsNotAccused) {
  World world;
  world.with(task("a")).begin();
  world.pass(kMustBeSeen - kSecond, true).exit(1);
  EXPECT_EQ(world.journal.ended.front().proof, PlacementProof::kUnseen);
  EXPECT_EQ(world.batch->end().summary.unseen, 1);
}

TEST(Batch, NobodyIsAccusedWhereTheListsWereNotRead) {
  World world;
  world.with(task("a")).begin();
  world.pass(2 * kMustBeSeen, false).exit(1);
  EXPECT_EQ(world.journal.ended.front().proof, PlacementProof::kUnseen);
}

TEST(Batch, WhoSeemsToComputeOnTheCpuIsToldWhileItRuns) {
  World world;
  world.with(task("a")).begin();
  world.pass(3 * kMustBeSeen - kSecond, true);
  EXPECT_THAT(world.said, IsEmpty());
  world.pass(60 * kSecond, true);
  EXPECT_THAT(world.said, ElementsAre(HasSubstr("may be computing on the CPU")));
}

TEST(Batch, ShortlyAfterAStartTheProcessListsAreWanted) {
  World world;
  world.with(task("a")).begin();
  world.pass(4 * kSecond + 1);
  const int wanted = world.recorder.lists_wanted;
  EXPECT_GE(wanted, 4);
  world.pass(10 * kSecond);
  EXPECT_LE(world.recorder.lists_wanted, wanted + 1);
}

// A short task holds memory for a part of a second: one look in each would rarely meet it.
TEST(Batch, ShortlyAfterAStartEveryLookIsFollowedByOneAtTheLists) {
  World world;
  world.with(task("a")).begin();
  for (int look = 1; look <= 20; ++look) {
    world.clock.now += kSecond / 10;
    world.look();
    EXPECT_GE(world.recorder.lists_wanted, look);
  }
  world.clock.now += 10 * kSecond;
  const int wanted = world.recorder.lists_wanted;
  world.look();
  EXPECT_EQ(world.recorder.lists_wanted, wanted);
}

TEST(Batch, TheRecordingHearsOfStartsEndsAndWaiting) {
  World world;
  world.with(task("a")).with(task("b")).begin();
  world.exit(1).exit(2);
  std::vector<std::string> kinds;
  for (const Event& event : world.recorder.events) kinds.push_back(event.kind);
  EXPECT_THAT(kinds, ElementsAre("attempt_start", "queue", "attempt_end", "attempt_start", "queue", "attempt_end"));
  EXPECT_THAT(world.recorder.followed, SizeIs(1));  // one process leads to its siblings
}

}  // namespace
}  // namespace headroom::batch
