// SPDX-License-Identifier: Apache-2.0
#include "batch/outcome.h"

#include <gmock/gmock.h>

namespace headroom::batch {
namespace {

using scheduler::StopReason;
using ::testing::HasSubstr;

constexpr ExitStatus kFailed{.code = 1};
constexpr ExitStatus kKilled{.signal = 9};
constexpr ExitStatus kTerminated{.signal = 15};
constexpr std::int64_t kGib = std::int64_t{1} << 30;

TEST(Outcome, ExitCodeZeroIsBelievedWhateverElseHappened) {
  const EndEvidence evidence{.stop_reason = StopReason::kTimedOut,
                             .stopped_as_misplaced = true,
                             .gpu_lost = true,
                             .output_tail = "torch.cuda.OutOfMemoryError: CUDA out of memory"};
  EXPECT_EQ(verdict_of(evidence), (Verdict{.outcome = AttemptOutcome::kSucceeded}));
}

TEST(Outcome, AFailureIsToldByItsStatusAndLastWords) {
  const Verdict verdict = verdict_of({.status = kFailed, .output_tail = "epoch 1\nValueError: no such layer\n"});
  EXPECT_EQ(verdict.outcome, AttemptOutcome::kFailed);
  EXPECT_THAT(verdict.reason, HasSubstr("exit code 1"));
  EXPECT_THAT(verdict.reason, HasSubstr("no such layer"));
}

TEST(Outcome, AReasonQuotesNoTokenAndNoPassword) {
  const auto reason = [](const char* line) { return verdict_of({.status = kFailed, .output_tail = line}).reason; };
  EXPECT_EQ(reason("ValueError: hf_AbCdEfGhIjKlMnOpQrStUv was refused\n"), "exit code 1: ValueError: *** was refused");
  EXPECT_THAT(reason("OSError: postgres://me:hunter2@host/db\n"), HasSubstr("postgres://me:***@host/db"));
  EXPECT_THAT(reason("KeyError: 'layer'\n"), HasSubstr("KeyError: 'layer'"));
  EXPECT_THAT(verdict_of({.ran = EndEvidence::Ran::kCouldNotStart,
                          .not_started_reason = "execute hf_AbCdEfGhIjKlMnOpQrStUv: no such file"})
                  .reason,
              HasSubstr("execute ***: no such file"));
}

TEST(Outcome, WhoWasToldToStopEndedForThatReason) {
  const std::pair<StopReason, AttemptOutcome> all[] = {{StopReason::kTimedOut, AttemptOutcome::kTimedOut},
                                                       {StopReason::kHung, AttemptOutcome::kHung},
                                                       {StopReason::kCancelled, AttemptOutcome::kCancelled},
                                                       {StopReason::kBatchStopped, AttemptOutcome::kInterrupted},
                                                       {StopReason::kDeviceLost, AttemptOutcome::kDeviceLost}};
  for (const auto& [reason, outcome] : all) {
    const Verdict verdict = verdict_of({.status = kTerminated, .stop_reason = reason, .output_tail = "MemoryError"});
    EXPECT_EQ(verdict.outcome, outcome);
    EXPECT_THAT(verdict.reason, HasSubstr("SIGTERM"));
  }
}

TEST(Outcome, ItsOwnWordsTellThatGpuMemoryRanOut) {
  const Verdict verdict =
      verdict_of({.status = kFailed, .output_tail = "torch.cuda.OutOfMemoryError: CUDA out of memory."});
  EXPECT_EQ(verdict.outcome, AttemptOutcome::kGpuOutOfMemory);
  EXPECT_THAT(verdict.reason, HasSubstr("OutOfMemoryError"));
}

TEST(Outcome, AFullGpuIsEnoughWithoutWords) {
  EndEvidence evidence{.status = kFailed, .gpu_used_bytes = 79 * kGib, .gpu_memory_bytes = 80 * kGib};
  EXPECT_EQ(verdict_of(evidence).outcome, AttemptOutcome::kGpuOutOfMemory);
  evidence.gpu_used_bytes = 60 * kGib;
  EXPECT_EQ(verdict_of(evidence).outcome, AttemptOutcome::kFailed);
}

TEST(Outcome, AKillThatTheKernelCountsWasForHostMemory) {
  EXPECT_EQ(verdict_of({.status = kKilled, .oom_kills = 1}).outcome, AttemptOutcome::kHostOutOfMemory);
  EXPECT_EQ(verdict_of({.status = kKilled}).outcome, AttemptOutcome::kFailed);
}

TEST(Outcome, AKilledLoaderWorkerIsToldByWhatTheKernelCounts) {
  EndEvidence evidence{.status = kFailed,
                       .output_tail =
                           "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n"
                           "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed. \n"};
  const auto reason = [&] { return verdict_of(evidence).reason; };
  EXPECT_EQ(verdict_of(evidence).outcome, AttemptOutcome::kFailed);
  EXPECT_THAT(reason(), HasSubstr("when the host's memory runs out; what it kills is not counted here"));
  evidence.oom_kill_meanwhile = false;
  EXPECT_EQ(verdict_of(evidence).outcome, AttemptOutcome::kFailed) << "somebody else killed it";
  EXPECT_THAT(reason(), ::testing::Not(HasSubstr("memory")));
  evidence.oom_kill_meanwhile = true;
  EXPECT_EQ(verdict_of(evidence).outcome, AttemptOutcome::kHostOutOfMemory);
  EXPECT_THAT(reason(),
              HasSubstr("worker (pid 7) is killed by signal: Killed.; the kernel counted an OOM kill in its"));
}

TEST(Outcome, AShellSaysWithItsExitCodeThatItsProgramWasKilled) {
  EXPECT_TRUE(killed_at_once(kKilled));
  EXPECT_TRUE(killed_at_once({.code = 137}));
  EXPECT_FALSE(killed_at_once(kTerminated));
  EXPECT_FALSE(killed_at_once(kFailed));
  EXPECT_EQ(verdict_of({.status = {.code = 137}, .oom_kills = 1}).outcome, AttemptOutcome::kHostOutOfMemory);
}

TEST(Outcome, OnAFullDiskAFailureIsNotTheTasks) {
  const Verdict verdict = verdict_of({.status = kFailed, .disk_full = true});
  EXPECT_EQ(verdict.outcome, AttemptOutcome::kInterrupted);
  EXPECT_TRUE(verdict.for_want_of_disk);
}

TEST(Outcome, WhatFailsOnALostGpuFailsBecauseOfIt) {
  EXPECT_EQ(verdict_of({.status = kFailed, .gpu_lost = true}).outcome, AttemptOutcome::kDeviceLost);
  EXPECT_EQ(verdict_of({.status = kKilled, .gpu_lost = true, .oom_kills = 1}).outcome,
            AttemptOutcome::kHostOutOfMemory);
}

TEST(Outcome, MisplacedIsSaidOnlyOfWhoWasStoppedForIt) {
  EXPECT_EQ(verdict_of({.status = kTerminated, .stopped_as_misplaced = true}).outcome, AttemptOutcome::kMisplaced);
}

TEST(Outcome, WhatNeverRanIsNotAFailureUnlessItCouldNotStart) {
  using Ran = EndEvidence::Ran;
  EXPECT_EQ(verdict_of({.ran = Ran::kCouldNotStart, .not_started_reason = "no such program"}),
            (Verdict{.outcome = AttemptOutcome::kNotStarted, .reason = "no such program"}));
  EXPECT_EQ(verdict_of({.ran = Ran::kCouldNotStart, .reason_passes = true}).outcome, AttemptOutcome::kInterrupted);
  EXPECT_EQ(verdict_of({.ran = Ran::kNotWanted}).outcome, AttemptOutcome::kInterrupted);
  EXPECT_EQ(verdict_of({.ran = Ran::kNotWanted, .stop_reason = StopReason::kCancelled}).outcome,
            AttemptOutcome::kCancelled);
}

TEST(Outcome, ASuccessLeavesWhatItPromised) {
  const Verdict verdict = verdict_of({.status = {}, .missing_output = "model.pt"});
  EXPECT_EQ(verdict.outcome, AttemptOutcome::kFailed);
  EXPECT_EQ(verdict.reason, "exit code 0, but it left no model.pt, which is among its outputs");
}

}  // namespace
}  // namespace headroom::batch
