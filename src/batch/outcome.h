// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/child.h"
#include "model/batch.h"
#include "scheduler/planner.h"

namespace headroom::batch {

// All that is known of how an attempt ended.
struct EndEvidence {
  enum class Ran { kToItsEnd, kCouldNotStart, kNotWanted } ran = Ran::kToItsEnd;
  std::string not_started_reason;  // of an attempt that never ran
  bool reason_passes = false;      // it could not start for something that will pass: not its fault
  ExitStatus status;
  std::optional<scheduler::StopReason> stop_reason;  // it was told to stop
  bool stopped_as_misplaced = false;                 // likewise, since it computed on another GPU
  bool gpu_lost = false;                             // a GPU that it was given is out of use by now
  bool disk_full = false;                            // where it prints
  std::string output_tail;
  std::string missing_output;                                    // it should have left this file, and there is none
  std::optional<std::int64_t> gpu_used_bytes, gpu_memory_bytes;  // of its (first) GPU
  std::int64_t oom_kills = 0;                                    // by the kernel, of processes of tasks
  std::optional<bool> oom_kill_meanwhile;  // one at least of those that it counts was while this ran; absent: uncounted
  bool oom_kills_of_machine = false;       // it counts those of the machine only
};

struct Verdict {
  AttemptOutcome outcome = AttemptOutcome::kSucceeded;
  std::string reason;             // in words; "" for a success
  bool for_want_of_disk = false;  // interrupted, since what it prints had no room
  bool operator==(const Verdict&) const = default;
};

// Whether the kernel may have killed it, or what it was a shell for: then its count of such kills is about this one.
[[nodiscard]] bool killed_at_once(const ExitStatus& status);

// The one place where it is decided how an attempt ended. Exit code 0 is believed, whatever else happened, if the
// files that it should have left are there; then counts why it was told to stop; then its output and the kernel are
// asked whether memory ran out.
[[nodiscard]] Verdict verdict_of(const EndEvidence& evidence);

}  // namespace headroom::batch
