// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "model/recording.h"

// The trials of a study, found among the processes of a recording by their times: no process says which trial it is of.
namespace headroom {

// A trial's time, Unix time. One that runs ends now.
struct TrialTime {
  std::int64_t number = 0;
  Nanos begin = 0, end = 0;
  bool finished = true;
  bool failed = false;
};

// What a recording says of one trial.
struct TrialUse {
  std::int64_t number = 0;
  std::optional<Nanos> startup;  // from its begin to the first kernel; of its own process, or of the only one there was
  std::optional<Nanos> gpu;      // kernels of its own process; else its part of all kernels, shared by the open trials
  std::optional<std::int64_t> memory_bytes;  // highest, of its own process or of the only one
  bool shared = false;                       // `gpu` is such a part: an estimate
  bool computed = false;                     // some of `gpu` has to have run in its time: no other time was long enough
  bool gone = false;                         // it is not finished, and its own process has ended
};

// A trial that failed for want of the GPU's memory: the job's output said so as it ended, or, of one with a process of
// its own, the memory of its GPU was full (Threshold::kOutOfMemory) at the last reading that saw the process.
struct OutOfMemoryTrial {
  std::int64_t number = 0;
  bool said = false;
};

struct StudyMatch {
  double covered = 0;              // share of the trials' time, from the first begin to the last end, that is recorded
  std::optional<double> gpu_busy;  // share of that in which a kernel ran, over the GPUs that the job's processes held
  std::optional<std::int64_t> memory_per_trial_bytes;  // highest of a process, where none ran several trials at once
  std::optional<std::int64_t> memory_at_once_bytes;    // highest of all processes of the job together, at a reading
  std::optional<std::int64_t> gpu_memory_bytes;        // what its GPU has, where its processes were on one alone
  std::vector<OutOfMemoryTrial> out_of_memory;         // a recording keeps the first lines that say so, not all
  std::vector<TrialUse> trials;                        // those that a process of the job was there for
};

// A process is a trial's own if it began after the trial and ended with it; where most trials have one, those count.
// Else processes are taken for workers, each of which runs one trial after the other, nobody says which: what one trial
// did is then known only while no other was open, and shares are equal.
[[nodiscard]] StudyMatch match_study(const Recording& recording, std::vector<TrialTime> trials);

}  // namespace headroom
