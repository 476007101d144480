// SPDX-License-Identifier: Apache-2.0
#include "model/observations.h"

#include <algorithm>
#include <array>
#include <utility>

#include "model/advice_words.h"

namespace headroom {

namespace {

// Where a recording has `tier` the catalogue's observation is made, and left the cause open: what to look at then.
struct Instead {
  Cause cause;
  char tier;
  Observation look;
};
constexpr char kNoPython = 0;  // for a tier: there is no Python whose stacks could be read
constexpr char kOver = 1;      // for a tier: the job has ended

constexpr Observation kCachedBatch{
    "a step with a cached batch", "train some steps on one batch that is kept: if they are faster, it waited for data"};
constexpr Observation kNative{kNativeStacks, "{stacks} several times while the GPU waits: what is it at?", true};
constexpr Observation kLoggingOff{"a run with logging off",
                                  "headroom run -- CMD with logging off, and headroom compare"};
constexpr Observation kWithoutThatWork{
    "the log of the job; a run without that work",
    "read the job's log: does the GPU wait where an epoch ends? Then headroom run -- CMD "
    "without that work, and headroom compare"};
constexpr Observation kFromACopy{
    "the same data asked for again, from a copy nearby",
    "headroom run -- CMD once with the data that it asks for kept on this machine, and headroom "
    "compare: if the waits are gone, it was what sends the data, or the way to it"};

// Of one cause, the one for more evidence first.
constexpr std::array kInstead{
    Instead{Cause::kUnreleasedAfterWork,
            kOver,
            {"the end of the job's log",
             "read the end of the job's log: did it save or send something after its last step, or stand still until "
             "it was ended?"}},
    Instead{Cause::kInputInMainProcess, kNoPython, kCachedBatch},
    Instead{Cause::kHostGraphBuilding, kNoPython, kNative},
    Instead{Cause::kSyncPoints, kNoPython, kCudaCalls},
    Instead{Cause::kGilContention, kNoPython, kNative},
    Instead{Cause::kLoggingUpload, kNoPython, kLoggingOff},
    Instead{Cause::kEpochEndHostWork, kNoPython, kWithoutThatWork},
    Instead{Cause::kWrongGpuAssignment,
            'P',
            {"CUDA_VISIBLE_DEVICES of each process beside its GPU in nvidia-smi",
             "tr '\\0' '\\n' </proc/PID/environ | grep CUDA_VISIBLE_DEVICES, for each process that nvidia-smi lists: "
             "is it meant for that GPU?",
             true}},
    Instead{Cause::kOneProcessImbalance,
            'P',
            {"the program: what it puts on each GPU",
             "read in the program what it puts on each GPU: parts of one model take turns, copies of it get shares of "
             "each batch"}},
    Instead{Cause::kInputInMainProcess, 'Y', kCachedBatch},
    Instead{Cause::kInputTooFewWorkers, 'P', kCachedBatch},
    Instead{Cause::kCpuOversubscribed,
            'P',
            {"the same run with the other load stopped",
             "headroom run -- CMD with the other load stopped{or_one_thread}, and headroom compare"}},
    Instead{Cause::kSlowStorage,
            'P',
            {"the same files read a second time, from memory",
             "headroom run -- CMD a second time, right after the first, while its files are in memory: if the waits "
             "are gone, it was the storage"}},
    Instead{Cause::kExposedCommunication,
            'Y',
            {"the time of an exchange that all ranks begin together",
             "have every rank wait for the others (barrier) and then time its exchange alone: does it take as long as "
             "these waits?"}},
    Instead{Cause::kEpochWorkerRestart,
            'P',
            {"a run with workers that stay",
             {"headroom run -- CMD with DataLoader(..., persistent_workers=True), and headroom compare",
              "headroom run -- CMD with processes that load and go on between epochs, and headroom compare"}}},
    Instead{Cause::kHostGraphBuilding,
            'Y',
            {"headroom stacks: what it was at while the GPU was idle",
             "headroom stacks RECORDING: what was it at while the GPU was idle?"}},
    Instead{Cause::kHostGraphBuilding,
            'P',
            {"its Python stacks: headroom run reads them, or headroom stacks --pid",
             "headroom run --stacks 20 -- CMD, then headroom stacks: what is it at while the GPU is idle?"}},
    Instead{Cause::kSyncPoints, 'Y', kCudaCalls},
    Instead{Cause::kGilContention,
            'Y',
            {"a run with the other threads stopped",
             "headroom run -- CMD with the other threads stopped, and headroom compare"}},
    Instead{Cause::kCheckpointSync,
            'P',
            {"a run without checkpoints", "headroom run -- CMD without checkpoints, and headroom compare"}},
    Instead{Cause::kLoggingUpload, 'Y', kLoggingOff},
    Instead{Cause::kEpochEndHostWork, 'Y', kWithoutThatWork},
};

const Observation& look_at(Cause cause, const RecordingMeta& meta) {
  const auto holds = [&](char tier) {
    if (tier == kNoPython) return without_python(meta);
    if (tier == kOver) return job_is_over(meta);
    return meta.tiers.find(tier) != std::string::npos;
  };
  const auto instead = std::find_if(kInstead.begin(), kInstead.end(),
                                    [&](const Instead& row) { return row.cause == cause && holds(row.tier); });
  return instead == kInstead.end() ? info(cause).observe : instead->look;
}

// A finding may know nearer what there is to look at.
const Observation& look_at(Cause cause, const Finding& finding, const RecordingMeta& meta) {
  return cause == Cause::kSlowStorage && finding.from_afar ? kFromACopy : look_at(cause, meta);
}

void put(std::string& how, std::string_view place, std::string_view words) {
  if (const auto at = how.find(place); at != std::string::npos) how.replace(at, place.size(), words);
}

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

std::string_view words_for(const RecordingMeta& meta, const Wording& advice) {
  return without_python(meta) ? advice.native : advice.python;
}

std::string_view next_observation(Cause cause, const RecordingMeta& meta) { return look_at(cause, meta).words; }

std::string_view next_observation(Cause cause, const Finding& finding, const RecordingMeta& meta) {
  return look_at(cause, finding, meta).words;
}

std::string step_of_observation(Cause cause, const Finding& finding, const RecordingMeta& meta) {
  const Observation& look = look_at(cause, finding, meta);
  const std::string_view told = words_for(meta, look.how);
  std::string how(told.empty() ? look.words : told);
  put(how, "{stacks}", without_python(meta) ? kNativeStacks : "headroom stacks --pid PID");
  put(how, "{or_one_thread}", one_thread_each(meta) || finding.no_threads_to_save ? "" : ", or with OMP_NUM_THREADS=1");
  const bool gone = job_is_over(meta) || is_imported(meta);
  return look.of_process && gone ? "in the next run, " + how : how;
}

}  // namespace headroom
