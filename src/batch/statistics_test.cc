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

// So many tasks of a second that ask for a GPU of their own, then four two by two, the first pair of `shorter` and the
// second of `longer` seconds, none looked at.
BatchSummary::Packing after_alone(int alone, int shorter, int longer) {
  World world;
  world.options.planner.pack = scheduler::PackMode::kFixed;
  world.options.planner.per_gpu = 2;
  for (int i = 0; i < alone + 4; ++i) {
    TaskSpec one = task("t" + std::to_string(i));
    one.resources.alone = i < alone;
    world.with(one);
  }
  world.begin();
  AttemptId id = 1;
  for (; id <= static_cast<AttemptId>(alone); ++id) world.pass(kSecond).exit(id);
  for (const int length : {shorter, longer}) {
    world.pass(length * kSecond);
    for (int i = 0; i < 2; ++i) world.exit(id++);
  }
  EXPECT_TRUE(world.batch->done());
  return world.batch->end().summary.packing.at(0);
}

TEST(Statistics, FewShortTasksThatWereAloneDoNotSpeakForOthersNorManyForLongerOnes) {
  EXPECT_THAT(std::string(after_alone(3, 2, 2).one_per_gpu_unknown), ::testing::HasSubstr("too few of them"));
  EXPECT_THAT(std::string(after_alone(4, 4, 16).one_per_gpu_unknown),
              ::testing::HasSubstr("the others took other times"));
  const auto alike = after_alone(4, 2, 2);
  ASSERT_TRUE(alike.one_per_gpu_work_per_second);
  EXPECT_NEAR(*alike.one_per_gpu_work_per_second, 1, 0.01);
  EXPECT_NEAR(alike.one_per_gpu_error_ratio, 0.05 + 0.05 * 4 / 8, 0.001);
}

// Four tasks of ten seconds, two by two; `before`: what each took alone in an earlier batch.
BatchSummary::Packing two_by_two(std::optional<Nanos> before) {
  World world;
  world.options.planner.pack = scheduler::PackMode::kFixed;
  world.options.planner.per_gpu = 2;
  world.options.took_alone = [before](const TaskSpec&, const std::string&) { return before; };
  world.options.learn = [](const TaskSpec&, const Attempt&, const std::string&, double,
                           const scheduler::CloseAttempt& closed) { EXPECT_FALSE(closed.alone.whole); };
  for (int i = 0; i < 4; ++i) world.with(task("t" + std::to_string(i)));
  world.begin();
  for (AttemptId id = 1; id <= 3; id += 2) world.pass(10 * kSecond).exit(id).exit(id + 1);
  EXPECT_TRUE(world.batch->done());
  return world.batch->end().summary.packing.at(0);
}

TEST(Statistics, EarlierBatchesSpeakOfTasksThatWereAloneInThem) {
  const auto known = two_by_two(8 * kSecond);
  EXPECT_TRUE(known.one_per_gpu_from_history);
  EXPECT_EQ(known.one_per_gpu_attempts, 0);
  EXPECT_NEAR(known.one_per_gpu_work_per_second.value(), 1 / 8.0, 1e-6);
  const auto unknown = two_by_two({});
  EXPECT_FALSE(unknown.one_per_gpu_work_per_second);
  EXPECT_FALSE(unknown.one_per_gpu_from_history);
}

TEST(Statistics, ATaskThatHadItsGpuToItselfIsLearnedAsAlone) {
  World world;
  int alone_runs = 0;
  world.options.learn = [&](const TaskSpec&, const Attempt&, const std::string&, double,
                            const scheduler::CloseAttempt& closed) { alone_runs += closed.alone.whole ? 1 : 0; };
  world.with(task("a")).with(task("b")).begin();
  for (AttemptId id = 1; id <= 2; ++id) world.pass(10 * kSecond).exit(id);
  EXPECT_TRUE(world.batch->done());
  EXPECT_EQ(alone_runs, 2);
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
