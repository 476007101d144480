// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tune/curves.h"
#include "tune/replay.h"
#include "tune/step_times.h"
#include "tune/study_options.h"

// A study as material for replays: what its trials were observed to do, how sure that is, and worlds drawn from it, in
// each of which the same trials would have done just that.
namespace headroom::tune {

inline constexpr double kProgramStart = 1;  // seconds between trials; a loop takes less, a program with imports more

struct StudyModel {
  std::string name;
  Direction direction = Direction::kMinimize;
  std::vector<const Trial*> trials;   // that ended, by begin
  std::vector<TimedTrial> times;      // theirs, since the first begin, standstills left out
  std::vector<ReplayTrial> observed;  // theirs: curve, end and value; durations are a world's
  double seconds = 0;                 // until the last of them ended
  std::array<double, kTrialStates> states{};
  std::int64_t workers = 1;
  std::vector<std::int64_t> present;     // of them, at the begin of each trial; empty: not known, taken for all
  bool one_process = false;              // takes trial after trial, by the worker that the storage names for each
  double between = 0;                    // seconds from the end of a trial to the begin of the next
  std::optional<PrunerSettings> pruner;  // absent: cuts stay where they were
  double target = 0;                     // the best value
  std::vector<std::size_t> lengths;      // reports of the trials that completed
  std::optional<CurveBook> curves;
  std::vector<StepTimes> ways;
  double growth = 1;          // of the time of steps, as ReplayTrial has it
  bool startup_known = true;  // else what part of a trial it is is drawn, and trials compute from their begin
  double kernel_share = 1;
  std::optional<double> cores;
  std::int64_t loader_workers = 0;
  std::vector<std::string> assumptions;
};

// What a seed draws of what is not known for sure.
struct World {
  std::vector<ReplayTrial> trials;  // in the order of the study
  ReplayMachine machine;            // step_cores without loader workers
  double warm_startup = 0;          // seconds
  double loader_cores = 0;          // that one loader worker keeps busy
};

// Reports of all its trials, if none is pruned; an upper bound, and what a replay costs.
[[nodiscard]] std::size_t most_reports(const StudyModel& model);
// An error says why the study cannot be replayed.
[[nodiscard]] Result<StudyModel> study_model(const Study& study, const StudyOptions& options, const StudyReport& facts);
[[nodiscard]] World draw_world(const StudyModel& model, std::uint64_t seed);

}  // namespace headroom::tune
