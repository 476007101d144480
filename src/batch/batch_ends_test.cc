// SPDX-License-Identifier: Apache-2.0
// How attempts end, by what else is seen of the machine meanwhile.
#include <gmock/gmock.h>

#include "batch/batch_testing.h"

namespace headroom::batch {
namespace {

using testing::task;
using testing::World;

// The task itself fails with an exit code of its own, as it waited for a worker that is gone.
TEST(BatchEnds, AKilledLoaderWorkerWasShortOfHostMemoryIfAKillIsCountedWhileTheTaskRan) {
  for (const Nanos after_start : {-kSecond, Nanos{0}}) {
    World world;
    world.with(task("a")).begin();
    world.executor.output[1] = "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed. \n";
    world.executor.oom_killed_at = world.clock.now + after_start;
    world.pass(kSecond).exit(1, {.code = 1});
    EXPECT_EQ(world.journal.ended.front().outcome,
              after_start < 0 ? AttemptOutcome::kFailed : AttemptOutcome::kHostOutOfMemory);
  }
}

// Whether each task that ends had its GPU for itself.
void note_alone(World& world, std::vector<bool>& alone) {
  world.options.learn = [&](const TaskSpec&, const Attempt&, const std::string&, double,
                            const scheduler::CloseAttempt& closed) { alone.push_back(closed.alone.whole); };
}

// The driver's lists are read before a task ends, and looked at when the next one has begun.
TEST(BatchEnds, ATaskThatEndedMeanwhileIsNoOtherUser) {
  for (const bool ours : {true, false}) {
    World world;
    std::vector<bool> alone;
    note_alone(world, alone);
    world.with(task("a")).with(task("b")).begin();
    world.pass(kSecond).exit(1);
    ASSERT_EQ(world.started().back(), 2u);
    world.where[ours ? 1 : 99] = 0;
    world.pass(kSecond).look().pass(kSecond).exit(2);
    EXPECT_EQ(alone, (std::vector<bool>{true, ours}));
  }
}

// A process that the driver lists long after that has the number of the task's, and is not the task's.
TEST(BatchEnds, WhoHasTheNumberOfAnEndedTaskIsAnotherUserAfterAWhile) {
  World world;
  std::vector<bool> alone;
  note_alone(world, alone);
  world.with(task("a")).with(task("b")).begin();
  world.pass(kSecond).exit(1);
  ASSERT_EQ(world.started().back(), 2u);
  world.where[1] = 0;
  for (int second = 0; second < 25; ++second) world.pass(kSecond).look();
  world.exit(2);
  EXPECT_EQ(alone, (std::vector<bool>{true, false}));
}

}  // namespace
}  // namespace headroom::batch
