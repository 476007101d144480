// SPDX-License-Identifier: Apache-2.0
#include "model/observations.h"

#include <algorithm>
#include <array>

namespace headroom {

namespace {

// Where a recording has `tier` the catalogue's observation is made, and left the cause open: what to look at then.
struct Instead {
  Cause cause;
  char tier;
  std::string_view observe;
};
constexpr char kNoPython = 0;  // for a tier: there is no Python whose stacks could be read
constexpr char kOver = 1;      // for a tier: the job has ended
// Of one cause, the one for more evidence first.
constexpr std::array kInstead{
    Instead{Cause::kUnreleasedAfterWork, kOver, "the end of the job's log"},
    Instead{Cause::kInputInMainProcess, kNoPython, "a step with a cached batch"},
    Instead{Cause::kHostGraphBuilding, kNoPython, kNativeStacks},
    Instead{Cause::kSyncPoints, kNoPython, "Nsight Systems (CUDA API)"},
    Instead{Cause::kGilContention, kNoPython, kNativeStacks},
    Instead{Cause::kLoggingUpload, kNoPython, "a run with logging off"},
    Instead{Cause::kEpochEndHostWork, kNoPython, "the log of the job; a run without that work"},
    Instead{Cause::kWrongGpuAssignment, 'P', "CUDA_VISIBLE_DEVICES of each process beside its GPU in nvidia-smi"},
    Instead{Cause::kOneProcessImbalance, 'P', "the program: what it puts on each GPU"},
    Instead{Cause::kInputInMainProcess, 'Y', "a step with a cached batch"},
    Instead{Cause::kInputTooFewWorkers, 'P', "a step with a cached batch"},
    Instead{Cause::kCpuOversubscribed, 'P', "the same run with the other load stopped, or with fewer threads"},
    Instead{Cause::kSlowStorage, 'P', "the same files read a second time, from memory"},
    Instead{Cause::kEpochWorkerRestart, 'P', "a run with workers that stay"},
    Instead{Cause::kHostGraphBuilding, 'Y', "headroom stacks: what it was at while the GPU was idle"},
    Instead{Cause::kHostGraphBuilding, 'P', "its Python stacks: headroom run reads them, or headroom stacks --pid"},
    Instead{Cause::kSyncPoints, 'Y', "Nsight Systems (CUDA API)"},
    Instead{Cause::kGilContention, 'Y', "a run with the other threads stopped"},
    Instead{Cause::kCheckpointSync, 'P', "a run without checkpoints"},
    Instead{Cause::kLoggingUpload, 'Y', "a run with logging off"},
    Instead{Cause::kEpochEndHostWork, 'Y', "the log of the job; a run without that work"},
};

}  // namespace

bool job_is_over(const RecordingMeta& meta) { return meta.stop_reason == "job_ended" || meta.exit_code.has_value(); }

bool is_imported(const RecordingMeta& meta) { return meta.origin.starts_with("import:"); }

namespace {

// "python3 train.py", "torchrun train.py"
bool names_python(const std::string& word) {
  const std::string_view name = std::string_view(word).substr(word.rfind('/') + 1);
  return name.starts_with("python") || name.ends_with(".py");
}

}  // namespace

bool without_python(const RecordingMeta& meta) {
  return std::none_of(meta.command.begin(), meta.command.end(), names_python) &&
         (meta.origin == "run" || meta.origin == "record") && meta.tiers.find('P') != std::string::npos &&
         meta.tiers.find('Y') == std::string::npos &&
         std::none_of(meta.missing_tiers.begin(), meta.missing_tiers.end(),
                      [](const MissingTier& one) { return one.tier == 'Y'; });
}

std::string_view next_observation(Cause cause, const RecordingMeta& meta) {
  const auto holds = [&](char tier) {
    if (tier == kNoPython) return without_python(meta);
    if (tier == kOver) return job_is_over(meta);
    return meta.tiers.find(tier) != std::string::npos;
  };
  const auto instead = std::find_if(kInstead.begin(), kInstead.end(),
                                    [&](const Instead& row) { return row.cause == cause && holds(row.tier); });
  return instead == kInstead.end() ? info(cause).observe : instead->observe;
}

std::string_view next_observation(Cause cause, const Finding& finding, const RecordingMeta& meta) {
  if (cause == Cause::kSlowStorage && finding.from_afar) return "the same data asked for again, from a copy nearby";
  return next_observation(cause, meta);
}

}  // namespace headroom
