// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compare/side.h"
#include "model/comparison.h"
#include "model/explanation.h"
#include "model/figure.h"
#include "model/requirement.h"
#include "model/study_report.h"

// Figures of whole runs, and whether they are what the user requires.
namespace headroom::compare {

[[nodiscard]] std::string known_figures();  // "busy, mean_utilization, …"

// "accuracy>=0.97", "peak_memory<22GB", "busy>=40%": a figure of kFigures or a metric that the job writes, <, <=, > or
// >=, a limit in a unit of the figure; a metric's limit is a number. kInvalidInput says what is wrong, and what is
// known.
[[nodiscard]] Result<Requirement> parse_requirement(std::string_view text);

// Of a recording: kFigures, GPU by GPU but for those on which only others ran kernels; and the metrics that a job
// wrote, the last values. Those of a batch's tasks are not in it: several of them may have written one metric.
[[nodiscard]] std::vector<Figure> figures_of(const Explanation& explanation);

// The metrics that a batch's tasks wrote, task by task, and how many tasks failed.
[[nodiscard]] std::vector<Figure> figures_of_tasks(const std::vector<Sample>& attempts);

// How many trials failed, and the best value: as "value", and by the name that the study gives its objective.
[[nodiscard]] std::vector<Figure> figures_of_study(const StudyReport& report,
                                                   const std::vector<std::string>& objectives);

// Those of B, and "speedup" where its job writes none of that name: A's time at equal work over B's, at both ends of
// its interval, so that a limit has to hold at both; not known where there is no ratio of equal work.
[[nodiscard]] std::vector<Figure> with_speedup(std::vector<Figure> figures, const Comparison& comparison);

// Kept where each figure of that name keeps it; not known where none breaks it and one was not measured.
[[nodiscard]] JudgedRequirement judged(const Requirement& requirement, const std::vector<Figure>& figures);
[[nodiscard]] std::vector<JudgedRequirement> judged(const std::vector<Requirement>& requirements,
                                                    const std::vector<Figure>& figures);
[[nodiscard]] bool all_kept(const std::vector<JudgedRequirement>& requirements);

}  // namespace headroom::compare
