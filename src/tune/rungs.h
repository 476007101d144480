// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "model/study_report.h"

namespace headroom::tune {

// What successive halving left in the trials, per bracket (0 where it is not Hyperband, or its settings are unknown)
// and rung. Where the settings do not say at which step a rung decides, it is the step at which more than half of its
// trials had the value that it keeps; 0 where that is none.
[[nodiscard]] std::vector<RungFacts> rung_facts(const Study& study, const std::optional<PrunerSettings>& pruner);

}  // namespace headroom::tune
