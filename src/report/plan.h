// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "model/plan.h"
#include "report/layout.h"

namespace headroom::report {

// "headroom.plan/1" (docs/json.md): fields are added, never renamed or removed, within a schema version.
[[nodiscard]] std::string to_json(const Plan& plan);

// The answer of `headroom plan`: at most 40 lines at 80 columns, unless all of it was asked for. `saved`: the file that
// has it as JSON, if any.
[[nodiscard]] std::string to_text(const Plan& plan, const TextOptions& options, std::string_view saved = "");

}  // namespace headroom::report
