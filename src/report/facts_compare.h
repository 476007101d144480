// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "report/compare_document.h"
#include "report/tables.h"

// What the document of a comparison says, apart from how it is written.
namespace headroom::report {

[[nodiscard]] std::string comparison_headline(const ComparisonDocument& d);
[[nodiscard]] std::vector<std::string> comparison_introduction(const ComparisonDocument& d);  // sentences
[[nodiscard]] std::vector<Point> result_points(const ComparisonDocument& d);
[[nodiscard]] Table result_table(const ComparisonDocument& d);  // what is drawn as intervals
[[nodiscard]] std::vector<Point> reason_points(const Comparison& c);
[[nodiscard]] std::vector<Point> memory_points(const Comparison& c);
[[nodiscard]] Table parts_table(std::string caption, const std::vector<ComparedPart>& parts);
[[nodiscard]] Table parameters_table(const Comparison& c);
[[nodiscard]] Table tasks_table(const Comparison& c);  // of batches: those of both sides
[[nodiscard]] Table metrics_table(const ComparisonDocument& d);
[[nodiscard]] Table artefacts_table(const Comparison& c);

}  // namespace headroom::report
