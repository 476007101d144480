// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/explanation.h"
#include "report/json_values.h"

// Where a job is, and what it said of its metrics, as the JSON answers have it.
namespace headroom::report {

[[nodiscard]] Json progress_json(const Explanation& e);
[[nodiscard]] Json metric_values_json(const std::vector<SaidMetric>& metrics);

}  // namespace headroom::report
