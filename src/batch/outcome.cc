// SPDX-License-Identifier: Apache-2.0
#include "batch/outcome.h"

#include <fmt/format.h>

#include <csignal>
#include <cstring>

#include "base/secrets.h"
#include "model/oom_kills.h"
#include "output/log_facts.h"
#include "output/oom.h"

namespace headroom::batch {

namespace {

using scheduler::StopReason;

std::string words_of(ExitStatus status) {
  if (status.signal == 0) return fmt::format("exit code {}", status.code);
  const char* name = ::sigabbrev_np(status.signal);
  return fmt::format("killed by signal {} (SIG{})", status.signal, name != nullptr ? name : "?");
}

struct Stopped {
  AttemptOutcome outcome;
  const char* words;
};

Stopped stopped_by(StopReason reason) {
  switch (reason) {
    case StopReason::kTimedOut:
      return {AttemptOutcome::kTimedOut, "ran longer than its timeout"};
    case StopReason::kHung:
      return {AttemptOutcome::kHung, "made no progress on CPU, I/O and GPU"};
    case StopReason::kCancelled:
      return {AttemptOutcome::kCancelled, "cancelled"};
    case StopReason::kBatchStopped:
      return {AttemptOutcome::kInterrupted, "the batch was stopped"};
    case StopReason::kDeviceLost:
      return {AttemptOutcome::kDeviceLost, "its GPU was lost"};
  }
  return {AttemptOutcome::kInterrupted, ""};
}

Verdict never_ran(const EndEvidence& evidence) {
  if (evidence.stop_reason) {
    const Stopped stopped = stopped_by(*evidence.stop_reason);
    return {.outcome = stopped.outcome, .reason = stopped.words};
  }
  if (evidence.ran == EndEvidence::Ran::kNotWanted)
    return {.outcome = AttemptOutcome::kInterrupted, .reason = "the batch was ended before it started"};
  return {.outcome = evidence.reason_passes ? AttemptOutcome::kInterrupted : AttemptOutcome::kNotStarted,
          .reason = evidence.not_started_reason};
}

Verdict by_itself(const EndEvidence& evidence) {
  const output::OomVerdict oom =
      output::recognise_oom({.exit_code = evidence.status.as_code(),
                             .output_tail = evidence.output_tail,
                             .peak_gpu_used_bytes = evidence.gpu_used_bytes,
                             .gpu_memory_bytes = evidence.gpu_memory_bytes,
                             .cgroup_oom_kills = evidence.oom_kills,
                             .oom_kill_meanwhile = evidence.oom_kill_meanwhile.value_or(false),
                             .oom_kills_of_machine = evidence.oom_kills_of_machine});
  if (oom.kind != output::OomKind::kNone)
    return {.outcome = output::is_host(oom.kind) ? AttemptOutcome::kHostOutOfMemory : AttemptOutcome::kGpuOutOfMemory,
            .reason = oom.evidence};
  Verdict verdict{.outcome = AttemptOutcome::kFailed, .reason = words_of(evidence.status)};
  if (evidence.disk_full)
    return {.outcome = AttemptOutcome::kInterrupted,
            .reason = verdict.reason + ", on a full disk",
            .for_want_of_disk = true};
  if (const std::string last = output::last_words(evidence.output_tail); !last.empty()) verdict.reason += ": " + last;
  if (const auto gone = gone_loader_worker(verdict.reason); gone && gone->killed && !evidence.oom_kill_meanwhile)
    verdict.reason += " (the kernel does so when the host's memory runs out; what it kills is not counted here)";
  return verdict;
}

Verdict without_gpu(const EndEvidence& evidence) {
  if (evidence.ran != EndEvidence::Ran::kToItsEnd) return never_ran(evidence);
  if (evidence.status.as_code() == 0 && evidence.missing_output.empty()) return {};
  if (evidence.stop_reason) {
    const Stopped stopped = stopped_by(*evidence.stop_reason);
    return {.outcome = stopped.outcome, .reason = fmt::format("{} ({})", stopped.words, words_of(evidence.status))};
  }
  if (evidence.stopped_as_misplaced)
    return {.outcome = AttemptOutcome::kMisplaced,
            .reason = "stopped: it computed on another GPU than the one it was given"};
  if (evidence.status.as_code() == 0)
    return {
        .outcome = AttemptOutcome::kFailed,
        .reason = fmt::format("exit code 0, but it left no {}, which is among its outputs", evidence.missing_output)};
  return by_itself(evidence);
}

}  // namespace

bool killed_at_once(const ExitStatus& status) { return status.as_code() == 128 + SIGKILL; }

Verdict verdict_of(const EndEvidence& evidence) {
  Verdict verdict = without_gpu(evidence);
  // What fails on a GPU that is lost fails because of it.
  if (evidence.gpu_lost && !evidence.stop_reason && info(verdict.outcome).tasks_fault)
    verdict.outcome = AttemptOutcome::kDeviceLost;
  verdict.reason = hide_known_secrets(verdict.reason);  // it may quote a line of output
  return verdict;
}

}  // namespace headroom::batch
