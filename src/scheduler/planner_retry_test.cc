// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "scheduler/testing/builders.h"

namespace headroom::scheduler {
namespace {

using testing::Batch;
using ::testing::SizeIs;
using testing::task;
using testing::TaskBuilder;

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
