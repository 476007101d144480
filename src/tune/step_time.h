// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "tune/parameter_columns.h"
#include "tune/step_model.h"
#include "tune/timeline.h"

namespace headroom::tune {

// Time of a step, and the parameter that explains most of how it varies from trial to trial: Spearman's rank
// correlation squared for numbers, the share of the ranks' variation that lies between categories otherwise (Kruskal
// and Wallis 1952). Named only if it is a third at least, the variation itself is worth a word, and chance would not
// give it. Where later steps clearly take longer than the first, `direction` says so and there is no time of a step.
[[nodiscard]] StepTimeFacts step_time(const Study& study, const std::vector<ParameterColumn>& columns,
                                      const StepModel& model, const Timeline& timeline);

}  // namespace headroom::tune
