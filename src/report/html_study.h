// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "report/facts_study.h"

// The charts of a study's document, each with its table. Empty where there is nothing to draw.
namespace headroom::report::html {

[[nodiscard]] std::string worker_time_chart(const StudyReport& report);
[[nodiscard]] std::string trials_chart(const StudyDocument& d);  // a line for each that ran side by side
[[nodiscard]] std::string curves_chart(const StudyDocument& d);  // with the cuts of the pruner
[[nodiscard]] std::string best_chart(const StudyDocument& d);    // the best value over time
[[nodiscard]] std::string what_if_chart(const StudyReport& report);

}  // namespace headroom::report::html
