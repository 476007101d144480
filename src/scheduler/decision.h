// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/time.h"
#include "model/batch.h"

// How an attempt ended and what becomes of its task: decided here and nowhere else in the scheduler. Pure; knows no
// GPU by its index, so that it holds for attempts on any host.
namespace headroom::scheduler {

inline constexpr double kMemoryLimit = 0.98;  // of a GPU's memory, for everybody together

enum class StopReason : std::uint8_t { kTimedOut, kHung, kCancelled, kBatchStopped, kDeviceLost };

// A task's attempts so far, and what its next one needs because of how they ended.
struct TaskTries {
  std::int64_t gpu_bytes = 0;   // to be reserved after an out-of-memory; 0: as its group
  std::int64_t host_bytes = 0;  // likewise
  int attempts = 0;
  int failures = 0;  // retries used up
  std::uint8_t ooms = 0, device_losses = 0;
  bool alone = false;  // on a GPU of its own
};

// What the attempt was given, and what samples showed of it.
struct AttemptFacts {
  TaskTries tries;  // of its task, this attempt among them
  bool on_gpu = false;
  bool had_company = false;  // others ran on its GPU at some time
  std::int64_t reserved_gpu_bytes = 0, reserved_host_bytes = 0;
  std::int64_t seen_gpu_bytes = 0;    // largest sample, per GPU
  std::int64_t gpu_memory_bytes = 0;  // of its GPU
};

// What is known of its end.
struct EndEvidence {
  AttemptOutcome reported = AttemptOutcome::kSucceeded;  // as whoever ran it saw it
  std::optional<StopReason> stopped;                     // it was asked to stop, for this
  bool device_lost = false;                              // a GPU of its own cannot be used any more
  std::optional<std::int64_t> peak_gpu_bytes, peak_host_bytes;
  std::string reason;  // in words
};

struct OutcomePolicy {
  RetryPolicy retry;
  int ooms_until_failed = 4;         // the last but one puts the task alone on its GPU; so many end it
  bool shares_gpus = true;           // a larger reservation helps; otherwise the next attempt has a GPU of its own
  std::int64_t most_host_bytes = 0;  // that can be reserved
};

struct Decision {
  AttemptOutcome outcome = AttemptOutcome::kSucceeded;
  std::optional<TaskState> end;  // of the task; absent: it runs again
  std::string reason;            // of the end, in words
  Nanos wait = 0;                // before it runs again
  TaskTries tries;               // with what this attempt taught
};

// Success is believed even after a stop. A failure on a lost GPU is the GPU's. Out of memory: a reservation 1.5 times
// as large, then a GPU of its own, then the end.
[[nodiscard]] Decision decide(const AttemptFacts& attempt, const EndEvidence& evidence, const OutcomePolicy& policy);

}  // namespace headroom::scheduler
