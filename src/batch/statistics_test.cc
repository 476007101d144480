// SPDX-License-Identifier: Apache-2.0
#include "batch/statistics.h"

#include <gmock/gmock.h>

#include "batch/batch_testing.h"

namespace headroom::batch {
namespace {

using testing::kGib;
using testing::task;
using testing::World;

constexpr ExitStatus kFailed{.code = 1};

// Forty tasks of ten seconds, two by two. `fails`: so many more that exit with 1.
BatchSummary::Packing packing_with(int fails) {
  World world;
  world.options.planner.pack = scheduler::PackMode::kFixed;
  world.options.planner.per_gpu = 2;
  for (int i = 0; i < 40 + fails; ++i) world.with(task("t" + std::to_string(i)));
  world.begin();
  AttemptId next = 1;
  while (!world.batch->done()) {
    world.pass(10 * kSecond, true);
    const std::vector<AttemptId> running = world.started();
    for (; next <= running.size(); ++next) world.exit(next, next % 2 == 0 && fails-- > 0 ? kFailed : ExitStatus{});
    world.pass(kSecond, true);  // failures on a GPU are judged at the next look
  }
  const BatchSummary summary = world.batch->end().summary;
  EXPECT_EQ(summary.packing.size(), 1u);
  return summary.packing.at(0);
}

TEST(Statistics, FailuresDoNotMakeWorkSlower) {
  const double without = packing_with(0).work_per_second.value();
  EXPECT_NEAR(without, 0.2, 0.02);
  EXPECT_NEAR(packing_with(15).work_per_second.value(), without, 0.02);
  EXPECT_NEAR(packing_with(40).work_per_second.value(), without, 0.02);
}

TEST(Statistics, RunningOutOfMemoryIsAPriceOfPacking) {
  World world;
  world.options.planner.pack = scheduler::PackMode::kFixed;
  world.options.planner.per_gpu = 2;
  world.with(task("a")).with(task("b")).begin();
  world.executor.output[2] = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB";
  world.pass(10 * kSecond, true).exit(1).exit(2, kFailed).pass(kSecond, true);
  EXPECT_EQ(world.journal.ended.back().outcome, AttemptOutcome::kGpuOutOfMemory);
  EXPECT_NEAR(world.batch->progress().gpus.at(0).tasks_per_second, 0.1, 0.01) << "one success in ten seconds";
}

TEST(Statistics, WhereAllFailedNothingIsSaidOfWork) {
  World world;
  world.with(task("a")).begin();
  world.pass(10 * kSecond, true).exit(1, kFailed).pass(2 * kSecond, true);
  ASSERT_TRUE(world.batch->done());
  EXPECT_TRUE(world.batch->end().summary.packing.empty());
}

}  // namespace
}  // namespace headroom::batch
