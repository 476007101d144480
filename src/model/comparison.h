// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_table.h"
#include "base/time.h"
#include "model/requirement.h"

// The answer of `headroom compare`, `ab` and `verify`: may two runs be compared at all, and if so, by how much they
// differ (compare/compare.h). Mirrors the schema headroom.compare/1 (docs/json.md).
namespace headroom {

// Why two runs may not be compared, or only with care.
enum class CompareReason : std::uint8_t {
  kDifferentTasks,
  kDifferentWork,
  kWorkUnknown,
  kConcurrencyDiffersOrUnknown,
  kDifferentHardware,
  kInterleavedWithOtherWork,
  kCacheStateUnknown,
  kOutcomesDiffer,
  kParametersUnknown,
  kParametersDifferUnintended,
  kTooFewRepeats,
  kNotInterleaved,
  kOtherTenants,
  kThrottled,
  kFasterWithMoreWork,
};
struct CompareReasonInfo {
  CompareReason id;
  std::string_view code;  // JSON
  bool refuses;           // as a rule: no ratio is given; else it is said beside the ratio
  std::string_view help;
};
// clang-format off
inline constexpr std::array kCompareReasons{
    CompareReasonInfo{CompareReason::kDifferentTasks, "different_tasks", true, "they did not run the same tasks"},
    CompareReasonInfo{CompareReason::kDifferentWork, "different_work", true, "they did not do equal work"},
    CompareReasonInfo{CompareReason::kWorkUnknown, "work_unknown", true, "nothing counts the work that they did"},
    CompareReasonInfo{CompareReason::kConcurrencyDiffersOrUnknown, "concurrency_differs_or_unknown", true, "how many ran at once differs, or is not known"},
    CompareReasonInfo{CompareReason::kDifferentHardware, "different_hardware", true, "they ran on other GPUs, drivers or cores"},
    CompareReasonInfo{CompareReason::kInterleavedWithOtherWork, "interleaved_with_other_work", true, "other work of the same batch ran in between"},
    CompareReasonInfo{CompareReason::kCacheStateUnknown, "cache_state_unknown", false, "one may have found its data in the page cache and the other not"},
    CompareReasonInfo{CompareReason::kOutcomesDiffer, "outcomes_differ", true, "some failed"},
    CompareReasonInfo{CompareReason::kParametersUnknown, "parameters_unknown", false, "the parameters as the programs resolved them are not recorded"},
    CompareReasonInfo{CompareReason::kParametersDifferUnintended, "parameters_differ_unintended", true, "parameters differ that nobody said should"},
    CompareReasonInfo{CompareReason::kTooFewRepeats, "too_few_repeats", true, "too few repeats to tell a difference from noise"},
    CompareReasonInfo{CompareReason::kNotInterleaved, "not_interleaved", false, "one ran after the other, so that what changed meanwhile counts, too"},
    CompareReasonInfo{CompareReason::kOtherTenants, "other_tenants", true, "others used the GPU meanwhile"},
    CompareReasonInfo{CompareReason::kThrottled, "throttled", true, "the GPU's clocks were lowered in one of them"},
    CompareReasonInfo{CompareReason::kFasterWithMoreWork, "faster_with_more_work", true, "the one that did more work was faster"},
};
// clang-format on
static_assert(in_order_of_ids(kCompareReasons));
[[nodiscard]] constexpr const CompareReasonInfo& info(CompareReason reason) {
  return kCompareReasons[static_cast<std::size_t>(reason)];
}

// A ratio B/A with its interval. Below 1: B took less.
struct Ratio {
  double value = 1, low = 1, high = 1;  // 95 %
  bool operator==(const Ratio&) const = default;
};

// The same pair by its other measure: one run of each, by their steps and as a whole.
struct OtherRatio {
  std::string unit;
  Ratio ratio;
  bool operator==(const OtherRatio&) const = default;
};

struct ComparedReason {
  CompareReason reason{};
  std::string text;     // with figures: "A ran 576 tasks, B 36"
  bool refuses = true;  // here: what is only a part of the reason may be said beside a ratio
  bool operator==(const ComparedReason&) const = default;
};

// One account of the ledger or one phase, in seconds per unit of work.
struct ComparedPart {
  std::string name;
  double a_seconds = 0, b_seconds = 0;
  bool operator==(const ComparedPart&) const = default;
};

// A figure that the programs print: a loss, an accuracy.
struct ComparedMetric {
  std::string name;
  double a = 0, b = 0;                       // means over the repeats
  std::optional<double> a_spread, b_spread;  // standard deviations, where there is more than one
  bool equal_work = true;                    // false: there is no value of both after the same steps or samples
  bool operator==(const ComparedMetric&) const = default;
};

struct ComparedParameter {
  std::string name, a, b;  // "": not there
  bool intended = false;   // somebody said it should
  bool operator==(const ComparedParameter&) const = default;
};

// A figure of the runs as wholes (compare/requirements.h): the mean over the repeats, of peaks the highest.
struct ComparedFigure {
  std::string name, of;  // as Figure's
  std::optional<double> a, b;
  bool operator==(const ComparedFigure&) const = default;
};

// A run of a batch's task, on either side.
struct ComparedRun {
  std::string task, side, outcome;  // side: "A" or "B"
  std::string why;                  // it ended so; "": nothing is said
  std::vector<std::string> gpus;
  std::optional<double> seconds;  // absent where a reason refuses
  bool operator==(const ComparedRun&) const = default;
};

struct ComparedArtefact {
  std::string name;
  bool same = false;
  std::string difference;  // in words, where it is not the same: "3 of 400 numbers differ, by 2e-3 at most"
  bool operator==(const ComparedArtefact&) const = default;
};

// What the recordings show where the two held unlike amounts of GPU memory (compare/memory.h): what stands beside it,
// which need not be why.
enum class MemoryFact : std::uint8_t {
  kPeak,
  kMean,
  kGpu,
  kTasks,
  kUnseenTasks,
  kProcesses,
  kOthers,
  kSettings,
  kBatchSize,
  kPrecision,
  kNotTold,
};
struct MemoryFactInfo {
  MemoryFact id;
  std::string_view code;  // JSON
  std::string_view label;
};
inline constexpr std::array kMemoryFacts{
    MemoryFactInfo{MemoryFact::kPeak, "peak", "peak"},
    MemoryFactInfo{MemoryFact::kMean, "mean", "mean"},
    MemoryFactInfo{MemoryFact::kGpu, "gpu", "GPUs"},
    MemoryFactInfo{MemoryFact::kTasks, "tasks", "tasks"},
    MemoryFactInfo{MemoryFact::kUnseenTasks, "unseen_tasks", "tasks not seen"},
    MemoryFactInfo{MemoryFact::kProcesses, "processes", "processes"},
    MemoryFactInfo{MemoryFact::kOthers, "others", "others on the GPU"},
    MemoryFactInfo{MemoryFact::kSettings, "settings", "settings"},
    MemoryFactInfo{MemoryFact::kBatchSize, "batch_size", "batch size"},
    MemoryFactInfo{MemoryFact::kPrecision, "precision", "precision"},
    MemoryFactInfo{MemoryFact::kNotTold, "not_told", "not told"},
};
static_assert(in_order_of_ids(kMemoryFacts));
[[nodiscard]] constexpr const MemoryFactInfo& info(MemoryFact fact) {
  return kMemoryFacts[static_cast<std::size_t>(fact)];
}
struct ComparedMemory {
  MemoryFact fact{};
  std::string text;
  bool operator==(const ComparedMemory&) const = default;
};

struct ComparedSide {
  std::string label;  // the recording or command
  std::int64_t runs = 0;
  double seconds = 0;          // of work, over all that is compared; 0 where a reason refuses
  std::optional<double> work;  // likewise, in the unit
  // Too short to be told apart: their time belongs to the phase around or before them.
  std::int64_t short_phases = 0;
  bool operator==(const ComparedSide&) const = default;
};

struct Comparison {
  ComparedSide a, b;
  std::string unit;                            // the ratio is of the time per one: "step", "sample", "task", "run"
  std::vector<ComparedReason> reasons;         // those that refuse first
  std::optional<Ratio> ratio;                  // time at equal work, B/A; absent where a reason refuses
  std::optional<OtherRatio> other;             // likewise, where both measures may be taken
  std::int64_t pairs = 0;                      // it rests on; 0: on stretches of steps, or on repeats that are no pairs
  std::string method;                          // what the interval rests on, in words: "8 interleaved pairs"
  std::vector<ComparedPart> phases, accounts;  // of the GPUs' time; empty where a reason refuses, as are metrics
  std::vector<ComparedMetric> metrics;
  std::vector<ComparedFigure> figures;          // those that either side has
  std::vector<ComparedMemory> memory;           // empty where it does not differ, or is not known
  std::vector<JudgedRequirement> requirements;  // of B, where the user gave some
  std::vector<ComparedParameter> parameters;    // those that differ
  std::vector<ComparedArtefact> artefacts;
  std::vector<ComparedRun> runs;  // of batches: all of both sides, by task
  std::string valid_command;      // that makes a valid pair
  std::string valid_note;         // what has to be filled in or known to use it; "": nothing

  [[nodiscard]] bool comparable() const { return ratio.has_value(); }
  // The interval leaves out 1.
  [[nodiscard]] bool differs() const { return ratio && (ratio->high < 1 || ratio->low > 1); }
  bool operator==(const Comparison&) const = default;
};

}  // namespace headroom
