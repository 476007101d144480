// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/study_report.h"
#include "model/study_verification.h"
#include "report/layout.h"
#include "report/tables.h"

// The pieces of the report about a study, each a few whole lines, or "" where there is nothing to say.
namespace headroom::report {

// ------------------------------------------------------------------------------------------------ words they share
[[nodiscard]] std::string duration_words(double seconds);                  // "45.0 s", "1:22:05"
[[nodiscard]] std::string duration_words(const Estimate& estimate);        // "45.0 s (40.1 s to 49.0 s)"
[[nodiscard]] std::string per_hour(double rate);                           // "144", "7.5"
[[nodiscard]] std::string figure_words(StudyFigure figure, double value);  // "144", "0:12:30", "83 %"
// "140 to 171"; one value where both are the same in words.
[[nodiscard]] std::string range_words(StudyFigure figure, const Estimate& range);
[[nodiscard]] std::string trial_words(const std::vector<std::int64_t>& numbers);  // "trial 7", "trials 3, 7 and 11"
[[nodiscard]] std::int64_t dead_trials(const StudyReport& report);
// "200 trials: 8 complete, 173 pruned, 15 failed, 4 running (2 of them dead)"
[[nodiscard]] std::string states_words(const StudyReport& report);
// Whole percents that sum to 100, by largest remainder; all 0 where nothing is.
[[nodiscard]] std::vector<int> percents(const std::vector<double>& parts);
// A label's text, in lines below each other.
[[nodiscard]] std::string labelled_words(std::string_view label, const std::string& words, const TextOptions& options);

// ----------------------------------------------------------------------------------------------------------- facts
enum class Facts { kFew, kUsual, kAll };
// Of the workers' time, and of the best value; "" where nothing is known.
[[nodiscard]] std::string worker_sentence(const StudyReport& report);
[[nodiscard]] std::string best_sentence(const StudyReport& report);
[[nodiscard]] std::vector<Point> study_facts(const StudyReport& report, Facts which);
[[nodiscard]] std::string anomaly_words(const StudyAnomaly& anomaly);  // with what to do
[[nodiscard]] std::vector<Point> study_sources(const StudyReport& report, Facts which);
[[nodiscard]] std::string study_answer(const StudyReport& report, const TextOptions& options);
[[nodiscard]] std::string study_facts_text(const StudyReport& report, const TextOptions& options, Facts which);
// `most`: so many anomalies, the costliest first, with what to do; how many more there are.
[[nodiscard]] std::string study_anomalies(const StudyReport& report, const TextOptions& options, std::size_t most);
// Only with options.full: worker time, trials by state, rungs, the best value over time.
[[nodiscard]] std::string study_tables(const StudyReport& report, const TextOptions& options);
// Where its times lie, and what it was read from.
[[nodiscard]] std::string study_source(const StudyReport& report, const TextOptions& options);

// --------------------------------------------------------------------------------------------------------- what-if
[[nodiscard]] std::string what_if_title(const StudyReport& report);
[[nodiscard]] std::string ratio_words(const WhatIf& row);                            // "0.79x-0.84x", "not reached"
[[nodiscard]] std::string rate_words(const StudyReport& report, const WhatIf& row);  // "144 -> 179"
[[nodiscard]] std::string busy_words(const StudyReport& report, const WhatIf& row);  // "83 -> 99 %"
[[nodiscard]] std::string_view busy_of(const StudyReport& report);                   // what that is a share of
[[nodiscard]] std::string risk_word(const WhatIf& row);
[[nodiscard]] std::string risk_words(const WhatIf& row);                                  // that word, and the reason
[[nodiscard]] std::string what_if_details(const StudyReport& report, const WhatIf& row);  // memory, cores, GPU-hours
[[nodiscard]] std::string what_if_notes(const StudyReport& report, const std::vector<const WhatIf*>& rows);
[[nodiscard]] std::vector<Point> study_calibration(const StudyReport& report, Facts which);
// `rows` of the table; then the exact edits for the first `edits` changes that help, and notes.
[[nodiscard]] std::string study_what_if(const StudyReport& report, const TextOptions& options, std::size_t rows,
                                        std::size_t edits);
// How near the replay came to the study, or why there is none.
[[nodiscard]] std::string study_calibration(const StudyReport& report, const TextOptions& options);

}  // namespace headroom::report
