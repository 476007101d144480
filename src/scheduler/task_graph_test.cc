// SPDX-License-Identifier: Apache-2.0
// The graph of tasks without any placement: as an executor drives it that hands out bundles of tasks to other hosts.
#include "scheduler/task_graph.h"

#include <gmock/gmock.h>

#include <deque>
#include <random>

#include "scheduler/testing/builders.h"

namespace headroom::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::task;
using testing::TaskBuilder;

class Tasks {
 public:
  Tasks& add(int count, const TaskBuilder& like) {
    for (int i = 0; i < count; ++i) {
      planned_.push_back(like.task);
      planned_.back().task = next_++;
    }
    return *this;
  }
  Tasks& read(bool more = false, const TaskGraph::Impossible& impossible = {}) {
    take(graph.add(planned_, more, impossible));
    planned_.clear();
    return *this;
  }
  Tasks& start(TaskIndex index) {
    std::erase(ready, index);
    graph.start(index);
    return *this;
  }
  Tasks& end(TaskIndex index, AttemptOutcome outcome = AttemptOutcome::kSucceeded) {
    const OutcomePolicy policy{.retry = graph.profile(index).retry};
    take(graph.end_attempt(index, decide({.tries = graph.task(index).tries}, {.reported = outcome}, policy), now));
    return *this;
  }
  void take(TaskChanges changes) {
    for (const TaskIndex index : changes.ready) ready.push_back(index);
    for (const TaskIndex index : changes.withdrawn) std::erase(ready, index);
    for (const auto& event : changes.events) {
      if (const auto* over = std::get_if<EndTask>(&event)) ended.push_back(over->task);
      if (const auto* again = std::get_if<RequeueTask>(&event)) requeued.push_back(again->task);
    }
  }
  TaskGraph graph;
  Nanos now = 0;
  std::vector<TaskIndex> ready, ended, requeued;

 private:
  std::vector<PlannedTask> planned_;
  TaskIndex next_ = 0;
};

TEST(TaskGraph, WhatComesAfterOthersIsReadyWhenAllOfThemSucceeded) {
  Tasks tasks;
  tasks.add(2, task()).add(1, task().after({0, 1})).read();
  EXPECT_THAT(tasks.ready, ElementsAre(0, 1));
  tasks.start(0).start(1).end(1);
  EXPECT_THAT(tasks.ready, IsEmpty());
  tasks.end(0);
  EXPECT_THAT(tasks.ready, ElementsAre(2));
}

TEST(TaskGraph, AFailureSkipsAllThatFollowsAndEachTaskEndsOnce) {
  Tasks tasks;
  tasks.add(1, task()).add(1, task().after({0})).add(1, task().after({1})).add(1, task().after({0, 2})).read();
  tasks.start(0).end(0, AttemptOutcome::kFailed);
  EXPECT_THAT(tasks.ended, ::testing::UnorderedElementsAre(0, 1, 2, 3));
  EXPECT_EQ(tasks.graph.counts().skipped, 3);
}

TEST(TaskGraph, AGroupIsCompleteOnlyWhenNoFurtherTasksCome) {
  Tasks tasks;
  tasks.add(1, task().group(0)).add(1, task().group(1).after_group(0)).read(true);
  tasks.start(0).end(0);
  EXPECT_THAT(tasks.ready, IsEmpty()) << "more may come";
  tasks.add(1, task().group(0)).read(false);
  EXPECT_THAT(tasks.ready, ElementsAre(2));
  tasks.start(2).end(2);
  EXPECT_THAT(tasks.ready, ElementsAre(1));
}

TEST(TaskGraph, WhatComesAfterMayBeAddedFirst) {
  Tasks tasks;
  tasks.add(1, task().after({1})).read(true);
  EXPECT_THAT(tasks.ready, IsEmpty());
  tasks.add(1, task()).read();
  tasks.start(1).end(1);
  EXPECT_THAT(tasks.ready, ElementsAre(0));
}

TEST(TaskGraph, ARetryWaitsAndIsThenReady) {
  Tasks tasks;
  tasks.add(1, task().retries(1)).read().start(0).end(0, AttemptOutcome::kFailed);
  EXPECT_THAT(tasks.requeued, ElementsAre(0));
  EXPECT_EQ(tasks.graph.state(0), TaskState::kBackingOff);
  EXPECT_EQ(tasks.graph.next_retry(), kSecond);
  tasks.take(tasks.graph.wake(kSecond - 1));
  EXPECT_THAT(tasks.ready, IsEmpty());
  tasks.take(tasks.graph.wake(kSecond));
  EXPECT_THAT(tasks.ready, ElementsAre(0));
  EXPECT_EQ(tasks.graph.start(0), 2) << "its second attempt";
}

TEST(TaskGraph, ADrainWakesNothing) {
  Tasks tasks;
  tasks.add(1, task().retries(1)).read().start(0).end(0, AttemptOutcome::kFailed);
  tasks.graph.drain();
  tasks.take(tasks.graph.wake(kSecond));
  EXPECT_THAT(tasks.ready, IsEmpty());
  EXPECT_FALSE(tasks.graph.next_retry());
}

TEST(TaskGraph, CancelEndsWhatWaitsAndLeavesWhatRunsToItsExecutor) {
  Tasks tasks;
  tasks.add(3, task().retries(1)).add(1, task().after({1})).read().start(0).start(2).end(2, AttemptOutcome::kFailed);
  for (const TaskIndex index : {0u, 1u, 2u, 77u}) tasks.take(tasks.graph.cancel(index));
  EXPECT_EQ(tasks.graph.state(0), TaskState::kRunning);
  EXPECT_EQ(tasks.graph.state(1), TaskState::kCancelled);
  EXPECT_EQ(tasks.graph.state(2), TaskState::kCancelled);
  EXPECT_EQ(tasks.graph.state(3), TaskState::kSkipped);
  EXPECT_THAT(tasks.ready, IsEmpty());
  tasks.take(tasks.graph.wake(kSecond));
  EXPECT_THAT(tasks.ready, IsEmpty()) << "it no longer waits for its retry";
}

TEST(TaskGraph, AnOutOfMemoryIsRememberedForTheNextAttempt) {
  Tasks tasks;
  tasks.add(1, task()).read().start(0);
  const Decision larger = decide({.tries = tasks.graph.task(0).tries,
                                  .on_gpu = true,
                                  .had_company = true,
                                  .reserved_gpu_bytes = 100,
                                  .gpu_memory_bytes = 1000},
                                 {.reported = AttemptOutcome::kGpuOutOfMemory}, {});
  const TaskChanges changes = tasks.graph.end_attempt(0, larger, 5);
  EXPECT_THAT(changes.ready, ElementsAre(0));
  ASSERT_THAT(changes.events, SizeIs(1));
  EXPECT_EQ(std::get<RequeueTask>(changes.events[0]).reserved_gpu_bytes, 150);
  EXPECT_EQ(tasks.graph.task(0).tries.gpu_bytes, 150);
}

TEST(TaskGraph, WhatCanNeverRunFailsAtOnceAndSaysWhy) {
  Tasks tasks;
  tasks.add(1, task().gpus(4)).add(1, task()).add(1, task().after({0}));
  tasks.read(false, [](const TaskProfile& profile) {
    return profile.resources.gpus > 2 ? std::optional<std::string>("too many") : std::nullopt;
  });
  EXPECT_THAT(tasks.ready, ElementsAre(1));
  EXPECT_EQ(tasks.graph.state(0), TaskState::kFailed);
  EXPECT_EQ(tasks.graph.state(2), TaskState::kSkipped);
}

TEST(TaskGraph, AGroupsLimitSaysWhenItIsFull) {
  Tasks tasks;
  tasks.graph.limit_group(0, 1);
  tasks.add(2, task()).read();
  EXPECT_FALSE(tasks.graph.group_full(0));
  tasks.start(0);
  EXPECT_TRUE(tasks.graph.group_full(0));
  EXPECT_FALSE(tasks.graph.group_full(7)) << "nobody spoke of it";
  tasks.end(0);
  EXPECT_FALSE(tasks.graph.group_full(0));
}

// Random graphs, handed out in bundles of four to hosts that know nothing of GPUs; some attempts fail or are cut off.
TEST(TaskGraph, BundlesOfRandomBatchesEndEveryTaskOnceAndInOrder) {
  for (unsigned seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    std::mt19937 dice(seed);
    const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(dice); };
    Tasks tasks;
    std::vector<std::vector<TaskIndex>> after;
    const int count = pick(1, 60);
    for (int i = 0; i < count; ++i) {
      TaskBuilder one = task().group(pick(0, 2)).retries(pick(0, 2));
      if (i > 0 && pick(0, 2) == 0) one.after({static_cast<TaskIndex>(pick(0, i - 1))});
      after.push_back(one.task.after);
      tasks.add(1, one);
    }
    tasks.read();
    std::deque<std::vector<TaskIndex>> bundles;
    while (!tasks.ready.empty() || !bundles.empty() || tasks.graph.next_retry()) {
      while (!tasks.ready.empty()) {
        auto& bundle = bundles.emplace_back();
        while (!tasks.ready.empty() && bundle.size() < 4) {
          bundle.push_back(tasks.ready.front());
          for (const TaskIndex before : after[bundle.back()])
            EXPECT_EQ(tasks.graph.state(before), TaskState::kSucceeded) << "seed " << seed;
          tasks.start(bundle.back());
        }
      }
      if (!bundles.empty()) {
        for (const TaskIndex index : bundles.front()) {
          const int luck = pick(0, 9);
          tasks.end(index, luck == 0   ? AttemptOutcome::kFailed
                           : luck == 1 ? AttemptOutcome::kInterrupted
                                       : AttemptOutcome::kSucceeded);
        }
        bundles.pop_front();
      } else if (const auto due = tasks.graph.next_retry()) {
        tasks.take(tasks.graph.wake(tasks.now = *due));
      }
    }
    std::sort(tasks.ended.begin(), tasks.ended.end());
    ASSERT_THAT(tasks.ended, SizeIs(static_cast<std::size_t>(count))) << "seed " << seed;
    EXPECT_EQ(std::adjacent_find(tasks.ended.begin(), tasks.ended.end()), tasks.ended.end()) << "seed " << seed;
    const BatchCounts counts = tasks.graph.counts();
    EXPECT_EQ(counts.succeeded + counts.failed + counts.skipped, count) << "seed " << seed;
  }
}

}  // namespace
}  // namespace headroom::scheduler
