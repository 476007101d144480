// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "model/ledger.h"

namespace headroom {

// Root causes; identifiers and catalogue numbers are DESIGN section 8's.
struct CauseInfo {
  std::string_view id;       // JSON
  std::string_view number;   // catalogue number, "" for what is no root cause
  std::string_view words;    // for people, in the middle of a sentence
  std::string_view observe;  // the cheapest observation that tells it from its look-alikes
};

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
  kPhaseAlternation,
  kRecordingLosses,
  kTaskWaiting,
};
[[nodiscard]] const CauseInfo& info(Cause cause);

// A statement about the recording, with what it rests on. A set of candidates where the tier cannot separate them.
struct Finding {
  std::optional<Cause> cause;     // absent for a set
  std::vector<Cause> candidates;  // for a set: two or more, the likeliest first
  std::string title;              // one line, a claim, no full stop
  Nanos cost = 0;                 // device-nanoseconds lost to it; 0 where it costs none
  Confidence confidence = Confidence::kMedium;
  std::string tier;                   // evidence tiers it rests on, e.g. "NP"
  std::vector<std::string> evidence;  // sentences with numbers and times
  std::vector<std::string> told_apart_from;
  std::string would_overturn;  // the one observation that would
  std::string advice;          // what to try; "" where there is nothing to try
  std::string bound;           // what it can gain at most, and the condition; "" without advice
  bool operator==(const Finding&) const = default;
};

}  // namespace headroom
