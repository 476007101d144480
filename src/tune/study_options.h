// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/time.h"
#include "model/study_report.h"

namespace headroom::tune {

// What of a recording tells that a trial failed for want of the GPU's memory.
enum class OutOfMemory : std::uint8_t { kNo = 0, kFull, kSaid };  // the memory was full as it ended; the output said so

// What a recording measured of one trial.
struct TrialMeasured {
  std::optional<double> startup_seconds;  // from its begin to its first kernel
  std::optional<Nanos> gpu;               // time in which a kernel of its process ran
  bool computed = true;                   // false: all of `gpu` may have run beside its time, in one reading with it
  std::optional<std::int64_t> memory_bytes;
  bool alive = true;  // false: its process is gone
  OutOfMemory out_of_memory = OutOfMemory::kNo;
};

// What the storage does not say and somebody else does.
struct StudyOptions {
  std::string storage;  // as the person named it
  Nanos now = 0;        // Unix time
  std::optional<PrunerSettings> pruner;
  std::string sampler;                  // "": not told
  std::optional<std::int64_t> workers;  // trials at once, as it was started
  std::optional<Nanos> utc_offset;      // --tz: of the storage's naive times
  Nanos local_offset = 0;               // of this machine at the study's time
  std::optional<std::int64_t> gpu_memory_bytes, memory_per_trial_bytes;
  std::optional<double> cores;                 // of the host
  std::optional<std::int64_t> loader_workers;  // per trial
  std::optional<double> kernel_share;          // of its computing time in which a trial's kernels run, alone; 0..1
  std::int64_t replays = 20;                   // seeds per change
  std::optional<StudyRecording> recording;
  std::map<std::int64_t, TrialMeasured> measured;  // by trial number
};

}  // namespace headroom::tune
