// SPDX-License-Identifier: Apache-2.0
#include "scheduler/decision.h"

#include <gmock/gmock.h>

#include "scheduler/testing/builders.h"

namespace headroom::scheduler {
namespace {

using ::testing::HasSubstr;
using testing::kGib;

AttemptFacts on_a_gpu() {
  return {.tries = {.attempts = 1},
          .on_gpu = true,
          .had_company = true,
          .reserved_gpu_bytes = 10 * kGib,
          .reserved_host_bytes = 4 * kGib,
          .seen_gpu_bytes = 12 * kGib,
          .gpu_memory_bytes = 80 * kGib};
}
OutcomePolicy policy(int retries = 0) { return {.retry = {.retries = retries}, .most_host_bytes = 100 * kGib}; }
Decision decide_on(AttemptOutcome reported, const AttemptFacts& attempt = on_a_gpu(),
                   const OutcomePolicy& with = policy()) {
  return decide(attempt, {.reported = reported}, with);
}

TEST(Decide, SuccessIsBelievedWhateverElseIsKnown) {
  const Decision decision = decide(on_a_gpu(), {.stopped = StopReason::kTimedOut, .device_lost = true}, policy());
  EXPECT_EQ(decision.outcome, AttemptOutcome::kSucceeded);
  EXPECT_EQ(decision.end, TaskState::kSucceeded);
}

TEST(Decide, AStopSaysWhyTheAttemptEnded) {
  const std::pair<StopReason, AttemptOutcome> outcomes[] = {{StopReason::kTimedOut, AttemptOutcome::kTimedOut},
                                                            {StopReason::kHung, AttemptOutcome::kHung},
                                                            {StopReason::kCancelled, AttemptOutcome::kCancelled},
                                                            {StopReason::kBatchStopped, AttemptOutcome::kInterrupted},
                                                            {StopReason::kDeviceLost, AttemptOutcome::kDeviceLost}};
  for (const auto& [reason, outcome] : outcomes)
    for (const auto reported : {AttemptOutcome::kFailed, AttemptOutcome::kGpuOutOfMemory})
      EXPECT_EQ(decide(on_a_gpu(), {.reported = reported, .stopped = reason}, policy()).outcome, outcome);
}

TEST(Decide, OnALostGpuATasksFaultIsNotItsOwnAndOutOfMemoryStays) {
  const auto on_lost = [](AttemptOutcome reported) {
    return decide(on_a_gpu(), {.reported = reported, .device_lost = true}, policy()).outcome;
  };
  EXPECT_EQ(on_lost(AttemptOutcome::kFailed), AttemptOutcome::kDeviceLost);
  EXPECT_EQ(on_lost(AttemptOutcome::kNotStarted), AttemptOutcome::kDeviceLost);
  EXPECT_EQ(on_lost(AttemptOutcome::kGpuOutOfMemory), AttemptOutcome::kGpuOutOfMemory);
  EXPECT_EQ(on_lost(AttemptOutcome::kInterrupted), AttemptOutcome::kInterrupted);
}

TEST(Decide, AnInterruptedAttemptRunsAgainAndUsesNothingUp) {
  const Decision decision = decide_on(AttemptOutcome::kInterrupted);
  EXPECT_FALSE(decision.end);
  EXPECT_EQ(decision.wait, 0);
  EXPECT_EQ(decision.tries.failures, 0);
}

TEST(Decide, EachRetryWaitsTwiceAsLongAndTheLastFailureSaysHowOften) {
  AttemptFacts attempt = on_a_gpu();
  for (const Nanos wait : {kSecond, 2 * kSecond}) {
    const Decision decision = decide_on(AttemptOutcome::kTimedOut, attempt, policy(2));
    EXPECT_FALSE(decision.end);
    EXPECT_EQ(decision.wait, wait);
    attempt.tries = decision.tries;
    ++attempt.tries.attempts;
  }
  const Decision last = decide(attempt, {.reported = AttemptOutcome::kFailed, .reason = "exit code 1"}, policy(2));
  EXPECT_EQ(last.end, TaskState::kFailed);
  EXPECT_EQ(last.reason, "failed: exit code 1 (3 attempts)");
}

TEST(Decide, AMisplacedTaskIsNotRetried) {
  EXPECT_EQ(decide_on(AttemptOutcome::kMisplaced, on_a_gpu(), policy(9)).end, TaskState::kFailed);
}

TEST(Decide, OutOfMemoryReservesHalfAsMuchAgainOfTheLargerOfHadAndSeen) {
  Decision decision = decide_on(AttemptOutcome::kGpuOutOfMemory);
  EXPECT_FALSE(decision.end);
  EXPECT_EQ(decision.tries.gpu_bytes, 18 * kGib);
  EXPECT_FALSE(decision.tries.alone);
  EXPECT_EQ(decision.tries.failures, 0) << "not a retry";
  AttemptFacts modest = on_a_gpu();
  modest.seen_gpu_bytes = kGib;
  EXPECT_EQ(decide_on(AttemptOutcome::kGpuOutOfMemory, modest).tries.gpu_bytes, 15 * kGib);
  modest.tries.gpu_bytes = 40 * kGib;
  EXPECT_EQ(decide_on(AttemptOutcome::kGpuOutOfMemory, modest).tries.gpu_bytes, 40 * kGib) << "never less than before";
}

TEST(Decide, TheThirdOutOfMemoryPutsTheTaskAloneAndTheFourthEndsIt) {
  AttemptFacts attempt = on_a_gpu();
  for (const bool alone : {false, false, true}) {
    const Decision decision = decide_on(AttemptOutcome::kGpuOutOfMemory, attempt);
    ASSERT_FALSE(decision.end);
    EXPECT_EQ(decision.tries.alone, alone) << static_cast<int>(decision.tries.ooms);
    attempt.tries = decision.tries;
    attempt.seen_gpu_bytes = attempt.reserved_gpu_bytes = kGib;
  }
  const Decision last = decide(
      attempt, {.reported = AttemptOutcome::kGpuOutOfMemory, .peak_gpu_bytes = 2 * kGib, .reason = "CUDA"}, policy());
  EXPECT_EQ(last.end, TaskState::kFailed);
  EXPECT_EQ(last.reason, "out of GPU memory, 4 times: 2048 MiB seen, 1024 MiB reserved: CUDA");
  attempt.seen_gpu_bytes = 0;
  EXPECT_EQ(decide(attempt, {.reported = AttemptOutcome::kGpuOutOfMemory, .reason = "CUDA"}, policy()).reason,
            "out of GPU memory, 4 times: over before a look at its memory, 1024 MiB reserved: CUDA");
  EXPECT_EQ(decide(attempt, {.reported = AttemptOutcome::kHostOutOfMemory, .reason = "killed"}, policy()).reason,
            "out of host memory, 4 times: its host memory was not seen: killed");
}

TEST(Decide, WhatRanOutOfMemoryWithAWholeGpuHasOneMoreTryAloneAndThenFails) {
  AttemptFacts attempt = on_a_gpu();
  attempt.had_company = false;
  const Decision first = decide_on(AttemptOutcome::kGpuOutOfMemory, attempt);
  EXPECT_FALSE(first.end);
  EXPECT_TRUE(first.tries.alone);
  attempt.tries = first.tries;
  const Decision second = decide_on(AttemptOutcome::kGpuOutOfMemory, attempt);
  EXPECT_EQ(second.end, TaskState::kFailed);
  EXPECT_THAT(second.reason, HasSubstr("alone on its GPU"));
}

TEST(Decide, AReservationBeyondAGpuIsAloneAndSoIsOneWhereGpusAreNotShared) {
  AttemptFacts large = on_a_gpu();
  large.seen_gpu_bytes = 53 * kGib;
  EXPECT_TRUE(decide_on(AttemptOutcome::kGpuOutOfMemory, large).tries.alone) << "79.5 of 80 GiB";
  large.seen_gpu_bytes = 52 * kGib;
  EXPECT_FALSE(decide_on(AttemptOutcome::kGpuOutOfMemory, large).tries.alone) << "78 of 80 GiB";
  OutcomePolicy fixed = policy();
  fixed.shares_gpus = false;
  EXPECT_TRUE(decide_on(AttemptOutcome::kGpuOutOfMemory, on_a_gpu(), fixed).tries.alone);
}

TEST(Decide, HostMemoryIsReservedUpToWhatTheHostHas) {
  const auto reserved = [](std::int64_t peak) {
    return decide(on_a_gpu(), {.reported = AttemptOutcome::kHostOutOfMemory, .peak_host_bytes = peak}, policy())
        .tries.host_bytes;
  };
  EXPECT_EQ(reserved(20 * kGib), 30 * kGib);
  EXPECT_EQ(reserved(kGib), 6 * kGib) << "it had 4";
  EXPECT_EQ(reserved(90 * kGib), 100 * kGib);
}

TEST(Decide, ThreeLostGpusEndATask) {
  AttemptFacts attempt = on_a_gpu();
  for (int loss = 1; loss <= 2; ++loss) {
    const Decision decision = decide_on(AttemptOutcome::kDeviceLost, attempt);
    ASSERT_FALSE(decision.end);
    attempt.tries = decision.tries;
  }
  const Decision last = decide_on(AttemptOutcome::kDeviceLost, attempt);
  EXPECT_EQ(last.end, TaskState::kFailed);
  EXPECT_EQ(last.reason, "3 GPUs were lost under it");
}

}  // namespace
}  // namespace headroom::scheduler
