// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/study_report.h"
#include "report/layout.h"

namespace headroom::report {

// The answer of `headroom study`: the facts in plain sentences, then the changes, best first, in line_limit() lines;
// with options.full all that is known. options.recording: how the next commands name the study.
[[nodiscard]] std::string to_text(const StudyReport& report, const TextOptions& options);
// A line for each study of a storage.
[[nodiscard]] std::string study_list(const std::vector<StudyReport>& studies, const TextOptions& options);
// "headroom.study/1": all studies of a storage.
[[nodiscard]] std::string to_json(const std::vector<StudyReport>& studies);

}  // namespace headroom::report
