// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/comparison.h"
#include "report/json_values.h"
#include "report/layout.h"
#include "report/tables.h"

// What was required of a run and whether it was kept, and the figures of two runs beside each other.
namespace headroom::report {

[[nodiscard]] std::string requirements_text(const std::vector<JudgedRequirement>& requirements,
                                            const TextOptions& options);  // "" without any
[[nodiscard]] Json requirements_json(const std::vector<JudgedRequirement>& requirements);
[[nodiscard]] Table requirements_table(const std::vector<JudgedRequirement>& requirements);

[[nodiscard]] Json figures_json(const std::vector<ComparedFigure>& figures);
[[nodiscard]] Table figures_table(const std::vector<ComparedFigure>& figures);

}  // namespace headroom::report
