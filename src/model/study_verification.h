// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/requirement.h"
#include "model/study_report.h"

// The answers of `headroom verify PLAN STORAGE` and of `headroom compare` of two studies (compare/study_verify.h,
// compare/studies.h). Mirror the schemas headroom.verify-study/1 and headroom.compare-study/1. Plain values.
namespace headroom {

// What a plan of a study predicts of it.
enum class StudyFigure : std::uint8_t { kTrialsPerHour = 0, kTimeToBest, kPruned, kTrialLength, kAtOnce, kMemory };
struct StudyFigureInfo {
  StudyFigure figure;
  std::string_view id, label;
};
inline constexpr std::array kStudyFigures{
    StudyFigureInfo{StudyFigure::kTrialsPerHour, "trials_per_hour", "trials/h"},
    StudyFigureInfo{StudyFigure::kTimeToBest, "time_to_best_seconds", "time to best"},
    StudyFigureInfo{StudyFigure::kPruned, "pruned_ratio", "pruned share"},
    StudyFigureInfo{StudyFigure::kTrialLength, "trial_seconds", "trial length"},
    StudyFigureInfo{StudyFigure::kAtOnce, "trials_at_once", "at once"},
    StudyFigureInfo{StudyFigure::kMemory, "memory_at_once_bytes", "GPU memory"}};
[[nodiscard]] inline const StudyFigureInfo& info(StudyFigure figure) {
  return kStudyFigures.at(static_cast<std::size_t>(figure));
}

// What a change does to a figure of a study.
struct VerifiedFigure {
  StudyFigure figure{};
  std::optional<Estimate> as_it_is;             // what is predicted of the study without the change
  std::optional<Estimate> predicted, measured;  // a range of 90 %, and the value with its own
  bool wanted = false;                          // it decides: trials per hour, and what the change is predicted to move
  std::optional<bool> kept;                     // absent: not known
  std::string why;                              // not known, or not kept
  bool operator==(const VerifiedFigure&) const = default;
};

struct StudyVerification {
  std::string plan, storage, study;  // as they were named
  std::string change;
  std::int64_t ended = 0;  // trials that did since the change, before the last one began
  std::int64_t used = 0;   // of them the first so many; 0: they are too few
  std::int64_t since = 0;  // number of the first trial after the change
  bool goes_on = false;    // it is a study that went on after the change, and its earlier trials do not count
  bool plans_own = false;  // the plan's, from the first trial that the plan does not know
  std::vector<std::string> differences;  // besides the change: nothing is judged
  std::vector<VerifiedFigure> figures;
  std::optional<Estimate> predicted_gain, measured_gain;  // of trials per hour, over the study as it is
  std::optional<bool> kept;                               // absent: not known
  std::string why;
  std::vector<JudgedRequirement> requirements;  // where the user gave some
  bool remembered = false;
};

// A study's side of a comparison.
struct ComparedStudy {
  std::string storage, name;
  std::int64_t trials = 0;
  std::array<std::int64_t, kTrialStates> states{};  // by TrialState
  std::optional<FirstTrials> ended;                 // of all that did before the last one began; absent: none
  std::optional<double> startup_share;
  std::int64_t workers = 0;
  std::optional<BestPoint> best;
  std::optional<double> reached_seconds;  // the worse of both best values, with the pauses left out
};

struct StudyComparison {
  ComparedStudy a, b;
  std::vector<std::string> differences;  // that make them incomparable
  std::vector<std::string> notes;        // that do not
  bool one_objective = true;
  std::vector<JudgedRequirement> requirements;  // of B, where the user gave some
};

}  // namespace headroom
