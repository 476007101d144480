// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/batch.h"
#include "model/recording.h"

namespace headroom {

// One run of one task, from the events of a batch's recording.
struct TaskAttempt {
  std::int32_t task = -1;  // index into BatchView::tasks
  std::string group;
  AttemptId id = 0;
  std::int64_t pid = 0;                   // of its first process
  Nanos begin = 0, end = 0;               // `end` is the recording's where the attempt was under way then
  std::vector<SourceId> devices;          // the kGpu sources it was given
  std::optional<AttemptOutcome> outcome;  // absent: under way when the recording ended
  bool running = false;                   // it still is, or was when the disk was full: nothing of it is lost
  std::string reason;                     // why it ended so, in words; "" where that is not known, or it succeeded
  std::optional<PlacementProof> proof;
  std::optional<Nanos> cpu_time;
  std::optional<std::int64_t> peak_gpu_bytes;

  [[nodiscard]] bool counted() const { return outcome == AttemptOutcome::kSucceeded; }
  [[nodiscard]] bool in_vain() const { return !counted() && !running; }  // its work was thrown away
};

// From `at` on some task that wants a GPU was ready and waited for a place, or none did.
struct QueueChange {
  Nanos at = 0;
  bool waiting = false;
};

struct NeverStarted {
  std::int32_t task = -1;
  Nanos at = 0;
};

// What `headroom batch` told its recording.
struct BatchView {
  bool present = false;                          // the recording is of a batch, and has its events
  std::vector<std::string> tasks;                // names, in order of their first attempt
  std::vector<TaskAttempt> attempts;             // in order of begin
  std::vector<QueueChange> queue;                // in order of time; before the first nothing waits
  std::vector<NeverStarted> never_started;       // attempts that could not be: they had no place
  std::vector<std::int32_t> attempt_of_process;  // by SourceId: index into attempts, or -1

  [[nodiscard]] bool waiting(Nanos at) const;
};

// Processes belong to the attempt whose first process they descend from. Process ids are reused: the first process of
// an attempt is the one that started while it ran.
[[nodiscard]] BatchView batch_view(const Recording& recording);

}  // namespace headroom
