// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string_view>

#include "tune/timeline.h"

namespace headroom::tune {

// What Optuna's TPESampler draws at random before it has seen enough, by its `n_startup_trials` (10, or as `sampler`
// says: "TPESampler(n_startup_trials=20)"). Under a Hyperband pruner that nothing wraps each bracket begins so. Absent:
// another sampler, or one that is not known.
[[nodiscard]] std::optional<RandomStart> random_start(std::string_view sampler, const Study& study,
                                                      const std::optional<PrunerSettings>& pruner,
                                                      const Timeline& timeline);

}  // namespace headroom::tune
