// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/study_report.h"

namespace headroom::tune {

// A pruner as it stands in a program, copied from there: "PatientPruner(HyperbandPruner(1, 100, 3), patience=2)", with
// or without "optuna.pruners."; positional and named arguments, Optuna's defaults for the rest. Short forms: "none",
// "median", "hyperband". PatientPruner(None, …) is kNone with patience; around a NopPruner nothing is ever pruned, and
// kNone is all that stays. Errors name the argument and what is possible.
[[nodiscard]] Result<PrunerSettings> parse_pruner(std::string_view text);

// The same, written back as Python; what has its default is left out.
[[nodiscard]] std::string pruner_text(const PrunerSettings& settings);

}  // namespace headroom::tune
