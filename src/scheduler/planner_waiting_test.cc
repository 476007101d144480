// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "scheduler/testing/builders.h"

// Waiting: in words, for each GPU; and until a retry.
namespace headroom::scheduler {

namespace {

using testing::Batch;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kGib;
using ::testing::SizeIs;
using testing::task;
using testing::TaskBuilder;

TEST(WhyWaiting, NamesTheMemoryThatItNeedsAndThatIsFree) {
  Batch batch(2);
  batch.add(2, task().memory(50 * kGib)).add(2, task().memory(40 * kGib)).begin();
  const WhyWaiting why = batch.planner().why_waiting(3);
  EXPECT_EQ(why.reason, "no GPU has enough memory to spare for it: may need 40.0 GiB, 28.4 GiB not spoken for");
  EXPECT_THAT(why.gpus, ::testing::Each("may need 40.0 GiB, 28.4 GiB not spoken for"));
  EXPECT_EQ(batch.planner().why_waiting(), batch.planner().why_waiting(2).reason) << "of the first in the queue";
}

TEST(WhyWaiting, SaysNothingOfATaskThatIsNotReady) {
  Batch batch(1);
  batch.add(1, task()).add(1, task().after({0})).begin();
  for (const TaskIndex other : {0u, 1u, 99u}) {
    EXPECT_EQ(batch.planner().why_waiting(other).reason, "");
    EXPECT_THAT(batch.planner().why_waiting(other).gpus, IsEmpty());
  }
}

TEST(WhyWaiting, EachGpuHasItsOwnReason) {
  Batch single(4);
  single.setup.pack = PackMode::kOnePerGpu;
  single.add(5, task()).begin();
  EXPECT_THAT(single.planner().why_waiting(4).gpus, ::testing::Each("one runs on it, and may not be more"));

  Batch busy(3);
  busy.add(1, task().memory(kGib).alone()).add(2, task().memory(70 * kGib)).add(1, task().memory(30 * kGib)).begin();
  busy.tell(GpuLost{1, "lost"}).tell(Readings{.gpus = {{.gpu = 2, .others_compute = true}}});
  EXPECT_THAT(busy.planner().why_waiting(3).gpus,
              ElementsAre("what runs on it has it alone", "it cannot be used any more", "another user computes on it"));
}

TEST(WhyWaiting, AnUnknownTaskWaitsForTheFirstOfItsGroup) {
  Batch batch(1);
  batch.add(2, task()).begin();
  EXPECT_THAT(batch.planner().why_waiting(1).gpus, ElementsAre(HasSubstr("the first of its group")));
  EXPECT_EQ(batch.planner().why_waiting(1).reason, "until the first of its group has shown what it needs");
}

TEST(WhyWaiting, NothingIsSaidOfRatesBeforeTheyWereMeasured) {
  Batch batch(1);
  batch.setup.measure_alone = true;
  batch.add(12, task().memory(kGib)).begin();
  EXPECT_EQ(batch.planner().why_waiting(11).reason, "until tasks of its group have shown what they do alone");
  Batch single(1);
  single.setup.pack = PackMode::kOnePerGpu;
  single.add(2, task()).begin();
  EXPECT_EQ(single.planner().why_waiting(1).reason, "on a GPU with room for it: one runs on it, and may not be more");
}

TEST(WhyWaiting, FullyUsedGpusTakeNoMore) {
  Batch batch(1);
  batch.add(40, task()).begin().learn(2 * kGib, 0.98);
  EXPECT_THAT(batch.planner().why_waiting(39).gpus, ElementsAre(HasSubstr("would not raise its measured rate")));
  EXPECT_THAT(batch.planner().why_waiting(39).reason, HasSubstr("would not raise its measured rate"));
}

TEST(WhyWaiting, OnSlotsThereAreNoGpusToSpeakOf) {
  Batch batch(1);
  batch.setup.slots = 1;
  batch.add(2, task().gpus(0)).begin();
  EXPECT_EQ(batch.planner().why_waiting(1).reason, "all 1 slots are taken");
  EXPECT_THAT(batch.planner().why_waiting(1).gpus, IsEmpty());
}

TEST(Retry, WithoutAWaitTheLastOfManyComesAtOnceAsWell) {
  TaskBuilder tireless = task().retries(200);
  tireless.task.retry.backoff = 0, tireless.task.retry.backoff_factor = 100;
  Batch batch(1);
  batch.add(1, tireless).begin();
  for (int failure = 1; failure <= 200; ++failure) {
    batch.wait(kSecond).end(0, AttemptOutcome::kFailed);
    const auto again = batch.all<RequeueTask>();
    ASSERT_THAT(again, SizeIs(1));
    ASSERT_EQ(again[0].at, batch.now) << "after failure " << failure;
  }
}

TEST(Retry, AWaitThatGrowsBeyondAllNumbersIsTheLongest) {
  TaskBuilder tireless = task().retries(200);
  tireless.task.retry.backoff = 1, tireless.task.retry.backoff_factor = 100;
  Batch batch(1);
  batch.add(1, tireless).begin();
  for (int failure = 1; failure <= 200; ++failure) {
    batch.end(0, AttemptOutcome::kFailed);
    const auto again = batch.all<RequeueTask>();
    ASSERT_THAT(again, SizeIs(1));
    if (failure > 10) {
      ASSERT_EQ(again[0].at - batch.now, RetryPolicy().backoff_max) << "after failure " << failure;
    }
    batch.wait(RetryPolicy().backoff_max).tell(Tick{});
  }
}

}  // namespace

}  // namespace headroom::scheduler
