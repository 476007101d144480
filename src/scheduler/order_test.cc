// SPDX-License-Identifier: Apache-2.0
#include "scheduler/order.h"

#include <gmock/gmock.h>

#include "scheduler/placer.h"

namespace headroom::scheduler {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TaskSpec spec(std::string name, std::string group, std::vector<std::string> after = {}) {
  TaskSpec task;
  task.name = std::move(name);
  task.group = std::move(group);
  task.after = std::move(after);
  task.file = "tasks.toml";
  task.line = 7;
  return task;
}

TEST(Order, NamesOfTasksAndGroupsAreResolved) {
  const std::vector specs{spec("prep", "a"), spec("train", "b", {"prep"}), spec("report", "c", {"b", "prep"})};
  const auto plan = plan_tasks(specs);
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->groups, ElementsAre("a", "b", "c"));
  EXPECT_THAT(plan->tasks[2].after, ElementsAre(0));
  EXPECT_THAT(plan->tasks[2].after_groups, ElementsAre(1));
}

TEST(Order, AnUnknownNameIsRefusedWithItsPlaceAndASuggestion) {
  const std::vector specs{spec("prepare", "a"), spec("train", "b", {"prepaer"})};
  const auto plan = plan_tasks(specs);
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().what, AllOf(HasSubstr("tasks.toml:7"), HasSubstr("train"), HasSubstr("prepaer")));
  EXPECT_THAT(plan.error().hint, HasSubstr("prepare"));
}

TEST(Order, CyclesAreRefusedAndNamed) {
  const std::vector ring{spec("a", "g", {"c"}), spec("b", "g", {"a"}), spec("c", "g", {"b"})};
  const auto plan = plan_tasks(ring);
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().what, HasSubstr("a after c after b after a"));
  const auto self = plan_tasks(std::vector{spec("a", "g", {"a"})});
  ASSERT_FALSE(self);
  EXPECT_THAT(self.error().what, HasSubstr("a after a"));
}

TEST(Order, ATaskAfterItsOwnGroupIsACycle) {
  const auto plan = plan_tasks(std::vector{spec("a", "g"), spec("b", "g", {"g"})});
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().what, HasSubstr("b after group g after b"));
}

TEST(Order, TwoTasksOfOneNameAreRefused) { EXPECT_FALSE(plan_tasks(std::vector{spec("a", "g"), spec("a", "g")})); }

TEST(Order, LongChainsAndLargeGroupsAreNoProblem) {
  std::vector<TaskSpec> specs{spec("t0", "g0")};
  for (int i = 1; i < 20000; ++i)
    specs.push_back(spec("t" + std::to_string(i), "g" + std::to_string(i % 2), {"t" + std::to_string(i - 1)}));
  specs.push_back(spec("last", "end", {"g0", "g1"}));
  EXPECT_TRUE(plan_tasks(specs));
}

TEST(Queue, HeadsAreInOrderOverBuckets) {
  ReadyQueue queue;
  queue.push(0, {.minus_expected = -5, .task = 1});
  queue.push(0, {.minus_expected = -9, .task = 2});
  queue.push(1, {.minus_expected = -7, .task = 3});
  queue.push(2, {.minus_priority = -1, .minus_expected = -1, .task = 4});
  std::vector<TaskIndex> order;
  while (!queue.empty()) {
    const auto [key, bucket] = *queue.heads().begin();
    order.push_back(key.task);
    EXPECT_TRUE(queue.erase(bucket, key));
    EXPECT_FALSE(queue.erase(bucket, key));
  }
  EXPECT_THAT(order, ElementsAre(4, 2, 3, 1));
}

}  // namespace
}  // namespace headroom::scheduler
