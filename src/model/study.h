// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"

// A hyper-parameter study as its storage tells it, in Optuna's words. Plain values; storage/ fills them, tune/ reads
// them. What all trials reported lies in one list, so that 100,000 trials with 50 reports each stay small.
namespace headroom {

enum class TrialState : std::uint8_t { kRunning = 0, kComplete, kPruned, kFail, kWaiting };  // Optuna's order
inline constexpr std::size_t kTrialStates = 5;
[[nodiscard]] std::string_view trial_state_name(TrialState state);  // "RUNNING", "COMPLETE", …
[[nodiscard]] std::optional<TrialState> trial_state_of(std::string_view name);

enum class Direction : std::uint8_t { kNotSet = 0, kMinimize, kMaximize };
[[nodiscard]] std::string_view direction_name(Direction direction);  // "NOT_SET", "MINIMIZE", "MAXIMIZE"
[[nodiscard]] std::optional<Direction> direction_of(std::string_view name);

// What Trial.report() wrote. NaN and infinities occur. There is no time in any storage.
struct StepReport {
  std::int64_t step = 0;
  double value = 0;
  bool operator==(const StepReport&) const = default;
};

enum class ParameterKind : std::uint8_t { kFloat = 0, kInt, kCategorical };

// What a parameter was drawn from. Trials of one study may differ in it: each difference is an entry of its own.
struct ParameterSpace {
  std::string name;
  ParameterKind kind = ParameterKind::kFloat;
  double low = 0, high = 0;          // numbers only
  std::optional<double> step;        // numbers only
  bool log = false;                  // numbers only
  std::vector<std::string> choices;  // categories only: the words people write; strings without quotes
  bool operator==(const ParameterSpace&) const = default;
};

struct ParameterValue {
  std::uint32_t space = 0;  // index into Study::spaces
  double value = 0;         // a category's is its index in `choices`
  bool operator==(const ParameterValue&) const = default;
};

struct Trial {
  std::int64_t number = 0;  // in the study, from 0
  TrialState state = TrialState::kRunning;
  // Nanoseconds since 1970 as the clock of its writer had it: local time up to Optuna 4.9, UTC from 5.0. Differences
  // hold; StudyReport::clock says what is known of the rest. Absent: a WAITING trial, or one that has not ended.
  std::optional<Nanos> start, complete;
  std::optional<Nanos> heartbeat;                   // the last one, Unix time
  std::vector<double> values;                       // one per objective, where it has some; infinities occur
  std::size_t first_report = 0, reports = 0;        // its part of Study::reports, by step
  std::size_t first_parameter = 0, parameters = 0;  // its part of Study::parameters
  std::vector<std::pair<int, double>> rungs;        // successive halving: completed rungs, by rung
  std::vector<double> constraints;                  // infeasible if any is over 0
  std::optional<std::int64_t> retry_of;             // number of the trial that this one repeats
  bool enqueued = false;                            // somebody asked for its parameters
  std::optional<std::uint32_t> worker;              // index into Study::workers; only journals know
  bool operator==(const Trial&) const = default;
};

struct Study {
  std::string name;
  std::vector<Direction> directions;  // one per objective
  std::vector<Trial> trials;          // by number
  std::vector<StepReport> reports;
  std::vector<ParameterSpace> spaces;
  std::vector<ParameterValue> parameters;
  std::vector<std::string> workers;
  std::vector<std::string> metric_names;  // where the study names its objectives
  std::string storage;                    // "sqlite", "postgresql", "journal"
  std::string schema;                     // "v3.0.0.d"; "": a journal
  std::string library_version;            // of Optuna, of who made the storage: not of who wrote a trial
  std::optional<Nanos> written;           // Unix time at which the storage was written last, where that is known
  bool times_in_utc = false;              // each time names its zone: start and complete of all trials are Unix time
  std::int64_t left_out = 0;              // rows that make no sense: of trials that do not exist, torn or damaged
  bool operator==(const Study&) const = default;
};

[[nodiscard]] inline std::span<const StepReport> reports_of(const Study& study, const Trial& trial) {
  return {study.reports.data() + trial.first_report, trial.reports};
}
[[nodiscard]] inline std::span<const ParameterValue> parameters_of(const Study& study, const Trial& trial) {
  return {study.parameters.data() + trial.first_parameter, trial.parameters};
}
[[nodiscard]] inline bool is_finished(TrialState state) {
  return state == TrialState::kComplete || state == TrialState::kPruned || state == TrialState::kFail;
}

}  // namespace headroom
