// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "base/enum_table.h"
#include "model/ledger.h"
#include "model/safety.h"

// The catalogue: what a finding may name, what it may claim, and what helps against it. docs/causes.md is made from it
// (tools/diagnosis_doc.py).
namespace headroom {

enum class Cause : std::uint8_t {
  kJobNeverUsesGpu,
  kWrongGpuAssignment,
  kOneProcessImbalance,
  kMoreGpusThanUseful,
  kInteractiveHoldingGpu,
  kUnreleasedAfterWork,
  kEnvironmentInstall,
  kStartupLoad,
  kCompileWarmup,
  kInputInMainProcess,
  kInputTooFewWorkers,
  kCpuOversubscribed,
  kSlowStorage,
  kPageCacheThrash,
  kEpochWorkerRestart,
  kBurstyInput,
  kHostGraphBuilding,
  kDuplicatePreprocessing,
  kPageableCopies,
  kSyncPoints,
  kLaunchBound,
  kPcieOrNuma,
  kBatchTooSmall,
  kMemoryLimited,
  kBusyButInefficient,
  kAllocatorChurn,
  kGilContention,
  kValidation,
  kCheckpointSync,
  kLoggingUpload,
  kEpochEndHostWork,
  kTrialChurn,
  kUnderPacking,
  kTailImbalance,
  kWastedTrials,
  kExposedCommunication,
  kStraggler,
  kThrottling,
  kForeignTenant,
  kSwapThrash,
  kOomRestartLoop,
  kHang,
  kHealthy,
  // Not root causes of idle time, but findings all the same.
  kSensorOutlier,
  kMonitoringMostlyElse,
  kRecordingLosses,
  kTaskWaiting,
  kDeviceLost,
  kOwnersUnknown,
  kUtilisationNotReported,
  kProcessStopped,
  kStepsWithoutGpu,
  kDeviceCopies,
};

// Accounts of the ledger.
class AccountSet {
 public:
  constexpr AccountSet() = default;
  constexpr AccountSet(std::initializer_list<Account> accounts) {
    for (const Account account : accounts) bits_ |= bit(account);
  }
  [[nodiscard]] constexpr bool has(Account account) const { return (bits_ & bit(account)) != 0; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }

 private:
  [[nodiscard]] static constexpr std::uint32_t bit(Account account) { return 1U << static_cast<unsigned>(account); }
  std::uint32_t bits_ = 0;
};

// Advice: as PyTorch and Python call things, and, where it differs, for a program without Python (words_for()): with
// CUDA's own calls, and with threads or processes of its own for a DataLoader's.
struct Wording {
  constexpr Wording() = default;
  constexpr Wording(const char* both) : python(both), native(both) {}
  constexpr Wording(const char* of_python, const char* of_native) : python(of_python), native(of_native) {}
  std::string_view python, native;
};

// What there is to look at, and how.
struct Observation {
  std::string_view words;  // "step times per rank"
  // An instruction, "" where the words are one. {stacks} stands for what shows the stacks of process PID,
  // {or_one_thread} for a job with fewer threads, where that is another job.
  Wording how;
  bool of_process = false;  // it looks at the job while that runs
};
// Which calls hold the host.
inline constexpr Observation kCudaCalls{
    "Nsight Systems (CUDA API)",
    "nsys profile -t cuda CMD: which calls, such as cudaStreamSynchronize or cudaMalloc, take the time?"};

// Root causes; identifiers and numbers are those of the catalogue in docs/causes.md.
struct CauseInfo {
  Cause cause;
  std::string_view id;           // JSON
  std::string_view number;       // in the catalogue, "" for what is no root cause
  std::string_view words;        // for people, in the middle of a sentence
  Observation observe;           // the cheapest observation that tells it from its look-alikes
  std::string_view needs;        // tiers without which no rule names it
  std::string_view beyond;       // what proves it and no recording of readings has; "" where readings suffice
  std::string_view signature;    // what it looks like: never one reading alone
  std::string_view look_alikes;  // each with the test that separates it
  AccountSet accounts;           // that a finding of it may claim; of a set: any of its candidates'
  std::string_view overturn;     // what would show that it is not this
};
[[nodiscard]] const CauseInfo& info(Cause cause);
[[nodiscard]] std::span<const CauseInfo> all_causes();

enum class Effort : std::uint8_t { kArgument, kLines, kRedesign };
struct EffortInfo {
  Effort id;
  std::string_view name;  // JSON, and for people
};
inline constexpr std::array kEfforts{
    EffortInfo{Effort::kArgument, "one argument or setting"},
    EffortInfo{Effort::kLines, "some lines"},
    EffortInfo{Effort::kRedesign, "a redesign"},
};
static_assert(in_order_of_ids(kEfforts));
[[nodiscard]] constexpr const EffortInfo& info(Effort effort) { return kEfforts[static_cast<std::size_t>(effort)]; }

// How a fix acts on the time of a job: what the simulation of a plan does with it (plan/step_model.h), and what bounds
// its gain.
enum class Mechanism : std::uint8_t { kRemoves, kOverlaps, kLoads, kEnlarges, kPacks, kSpreads, kReturns };
struct MechanismInfo {
  Mechanism id;
  std::string_view name;   // JSON
  std::string_view bound;  // of time at equal work
};
inline constexpr std::array kMechanisms{
    MechanismInfo{Mechanism::kRemoves, "removes", "the time it claims vanishes; the rest stays as it is"},
    MechanismInfo{Mechanism::kOverlaps, "overlaps",
                  "the time it claims goes on beside the rest of the loop, as far as that lasts"},
    MechanismInfo{Mechanism::kLoads, "loads",
                  "max(kernels and other code, CPU time of loading / min(workers, usable cores))"},
    MechanismInfo{Mechanism::kEnlarges, "enlarges", "min(batch ratio, 1 / busy share), or the line through two sizes"},
    MechanismInfo{Mechanism::kPacks, "packs", "tasks that fit by kernels, memory and cores, over those that run now"},
    MechanismInfo{Mechanism::kSpreads, "spreads", "GPUs over GPUs in use, if the work can be split evenly"},
    MechanismInfo{Mechanism::kReturns, "returns", "no speed: GPU time or a failed run comes back"},
};
static_assert(in_order_of_ids(kMechanisms));
[[nodiscard]] constexpr const MechanismInfo& info(Mechanism mechanism) {
  return kMechanisms[static_cast<std::size_t>(mechanism)];
}

// What helps against a cause. {workers}, {cores}, {batch} and {tasks} stand for what the recording says.
struct Fix {
  Cause cause;
  std::string_view id;  // JSON; no two fixes share one
  Wording title;
  Mechanism mechanism;
  Safety safety;
  std::string_view why_safe;
  Effort effort;
  Wording apply;
  Wording verify;
  Wording undo;
  double stays = 0;  // of the claimed time, whatever is done: 0.5 where something is done half as often
};
[[nodiscard]] std::span<const Fix> fixes_of(Cause cause);  // the one to try first, first
[[nodiscard]] std::span<const Fix> all_fixes();

}  // namespace headroom
