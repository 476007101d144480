// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "report/study_document.h"
#include "report/tables.h"

// What the document of a study says, apart from how it is written.
namespace headroom::report {

[[nodiscard]] std::string study_headline(const StudyDocument& d);
[[nodiscard]] std::vector<std::string> study_introduction(const StudyDocument& d);  // sentences
[[nodiscard]] Table worker_time_table(const StudyReport& report);
[[nodiscard]] Table trial_states_table(const StudyReport& report);
[[nodiscard]] Table trials_table(const StudyDocument& d);  // the longest
[[nodiscard]] Table curves_table(const StudyDocument& d);  // of those that are drawn, the best first
[[nodiscard]] Table best_table(const StudyReport& report);
[[nodiscard]] Table rungs_table(const StudyReport& report);
[[nodiscard]] Table what_if_table(const StudyReport& report);
[[nodiscard]] std::vector<Point> anomaly_points(const StudyReport& report);
[[nodiscard]] std::vector<Point> what_if_points(const StudyReport& report, const WhatIf& row);
[[nodiscard]] std::string what_if_note(const StudyReport& report);
[[nodiscard]] std::vector<std::string> study_commands(const StudyDocument& d);

// Learning curves: what trials reported at each step.
struct Curve {
  const Trial* trial = nullptr;
  std::vector<StepReport> points;  // finite; thinned evenly, the last one kept
};
struct Curves {
  std::vector<Curve> curves;         // by number
  std::size_t trials = 0;            // that reported anything finite, drawn or not
  std::int64_t first = 0, last = 0;  // steps
  double low = 0, high = 0;          // of the scale; what lies beyond it is drawn at its edge
  bool beyond = false;               // some does
  bool thinned = false;              // some curves have more reports than points
};
// As many as a picture holds, evenly by number, and the best trial's in any case.
[[nodiscard]] Curves curves_of(const StudyDocument& d);

[[nodiscard]] std::string curves_words(const Curves& curves);  // how they are drawn
[[nodiscard]] std::string state_word(TrialState state);        // "complete", "pruned"

}  // namespace headroom::report
