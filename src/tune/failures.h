// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "model/study_report.h"
#include "tune/parameter_columns.h"

namespace headroom::tune {

// Failed trials by where they lie: regions of one or two parameters in which so many more of the finished trials failed
// than elsewhere that chance gives it once in 100 studies (hypergeometric, times the regions tried); then those that
// lie in none, by whether they reported a step.
[[nodiscard]] std::vector<FailureGroup> failure_groups(const Study& study, const std::vector<ParameterColumn>& columns);

}  // namespace headroom::tune
