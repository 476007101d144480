// SPDX-License-Identifier: Apache-2.0
#include "scheduler/decision.h"

#include <algorithm>
#include <cmath>

#include "base/human.h"
#include "base/result.h"
#include "scheduler/setup.h"

namespace headroom::scheduler {

namespace {

constexpr double kLargerReservation = 1.5;  // of what the one that ran out of memory had
constexpr int kDeviceLossesUntilFailed = 3;

AttemptOutcome outcome_of(const EndEvidence& evidence) {
  if (evidence.reported == AttemptOutcome::kSucceeded) return evidence.reported;
  if (evidence.stopped) {
    switch (*evidence.stopped) {
      case StopReason::kTimedOut:
        return AttemptOutcome::kTimedOut;
      case StopReason::kHung:
        return AttemptOutcome::kHung;
      case StopReason::kCancelled:
        return AttemptOutcome::kCancelled;
      case StopReason::kBatchStopped:
        return AttemptOutcome::kInterrupted;
      case StopReason::kDeviceLost:
        return AttemptOutcome::kDeviceLost;
    }
  }
  const bool blamed = info(evidence.reported).tasks_fault;
  return evidence.device_lost && blamed ? AttemptOutcome::kDeviceLost : evidence.reported;
}

Nanos backoff(const RetryPolicy& retry, int failures) {
  if (retry.backoff <= 0) return 0;  // the factor may become infinite, and 0 times that is no number
  const double wait = static_cast<double>(retry.backoff) * std::pow(std::max(1.0, retry.backoff_factor), failures - 1);
  return static_cast<Nanos>(std::min(wait, static_cast<double>(retry.backoff_max)));
}

void end(Decision& decision, TaskState state, std::string reason = "") {
  decision.end = state;
  decision.reason = std::move(reason);
}

void after_device_loss(Decision& decision) {
  const int losses = ++decision.tries.device_losses;
  if (losses >= kDeviceLossesUntilFailed)
    end(decision, TaskState::kFailed, fmt::format("{} GPUs were lost under it", losses));
}

void after_failure(Decision& decision, const EndEvidence& evidence, const RetryPolicy& retry) {
  TaskTries& tries = decision.tries;
  ++tries.failures;
  const bool would_again = decision.outcome == AttemptOutcome::kMisplaced;  // on the GPU that its command chooses
  if (tries.failures <= retry.retries && !would_again) {
    decision.wait = backoff(retry, tries.failures);
    return;
  }
  std::string words(info(decision.outcome).label);
  if (!evidence.reason.empty()) words += ": " + evidence.reason;
  if (tries.failures > 1) words += fmt::format(" ({} attempts)", tries.attempts);
  end(decision, TaskState::kFailed, std::move(words));
}

std::string words_of_oom(const Decision& decision, const AttemptFacts& attempt, const EndEvidence& evidence,
                         bool had_all) {
  std::string numbers = fmt::format("host memory {}", human_bytes(evidence.peak_host_bytes.value_or(0)));
  if (decision.outcome == AttemptOutcome::kGpuOutOfMemory) {
    // One that dies within a tenth of a second is over before anybody looks: nothing seen is not nothing used.
    const std::int64_t seen = std::max(evidence.peak_gpu_bytes.value_or(0), attempt.seen_gpu_bytes);
    numbers =
        fmt::format("{}, {} reserved{}", seen > 0 ? human_bytes(seen) + " seen" : "over before a look at its memory",
                    human_bytes(attempt.reserved_gpu_bytes), had_all ? ", alone on its GPU" : "");
  } else if (evidence.peak_host_bytes.value_or(0) <= 0) {
    numbers = "its host memory was not seen";
  }
  return fmt::format("{}, {} times: {}{}{}", info(decision.outcome).label, static_cast<int>(decision.tries.ooms),
                     numbers, evidence.reason.empty() ? "" : ": ", evidence.reason);
}

void after_oom(Decision& decision, const AttemptFacts& attempt, const EndEvidence& evidence,
               const OutcomePolicy& policy) {
  TaskTries& tries = decision.tries;
  const bool host = decision.outcome == AttemptOutcome::kHostOutOfMemory;
  const bool had_all = !host && attempt.on_gpu && !attempt.had_company;
  ++tries.ooms;
  if ((had_all && tries.alone) || tries.ooms >= policy.ooms_until_failed)
    return end(decision, TaskState::kFailed, words_of_oom(decision, attempt, evidence, had_all));
  if (host) {
    const std::int64_t peak = std::max(evidence.peak_host_bytes.value_or(0), attempt.reserved_host_bytes);
    tries.host_bytes = std::max(tries.host_bytes, std::min(scaled(peak, kLargerReservation), policy.most_host_bytes));
  } else if (attempt.on_gpu) {
    const std::int64_t had = std::max(attempt.reserved_gpu_bytes, attempt.seen_gpu_bytes);
    tries.gpu_bytes = std::max(tries.gpu_bytes, scaled(had, kLargerReservation));
    tries.alone = had_all || !policy.shares_gpus || tries.ooms + 1 >= policy.ooms_until_failed ||
                  tries.gpu_bytes >= scaled(attempt.gpu_memory_bytes, kMemoryLimit);
  }
}

}  // namespace

Decision decide(const AttemptFacts& attempt, const EndEvidence& evidence, const OutcomePolicy& policy) {
  Decision decision{.outcome = outcome_of(evidence), .tries = attempt.tries};
  switch (decision.outcome) {
    case AttemptOutcome::kSucceeded:
      end(decision, TaskState::kSucceeded);
      break;
    case AttemptOutcome::kCancelled:
      end(decision, TaskState::kCancelled, "cancelled");
      break;
    case AttemptOutcome::kInterrupted:
      break;
    case AttemptOutcome::kDeviceLost:
      after_device_loss(decision);
      break;
    case AttemptOutcome::kGpuOutOfMemory:
    case AttemptOutcome::kHostOutOfMemory:
      after_oom(decision, attempt, evidence, policy);
      break;
    case AttemptOutcome::kFailed:
    case AttemptOutcome::kTimedOut:
    case AttemptOutcome::kHung:
    case AttemptOutcome::kMisplaced:
    case AttemptOutcome::kNotStarted:
      after_failure(decision, evidence, policy.retry);
      break;
  }
  return decision;
}

}  // namespace headroom::scheduler
