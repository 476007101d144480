// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string_view>

#include "model/study.h"

namespace headroom {

// What a parameter of that name is drawn from, from the JSON text that Optuna keeps of it: Float-, Int- and
// CategoricalDistribution, and the five classes before Optuna 3.0. Nothing where it is no such text.
[[nodiscard]] std::optional<ParameterSpace> parse_distribution(std::string_view name, std::string_view text);

// Whether a parameter that was drawn from `before` in one trial may be drawn from `now` in another: the same kind and
// scale, and for categories the same choices. Optuna refuses it otherwise.
[[nodiscard]] bool are_compatible(const ParameterSpace& before, const ParameterSpace& now);

// Whether `value` can be of that space: a number that is one, or the index of a choice.
[[nodiscard]] bool is_value_of(const ParameterSpace& space, double value);

}  // namespace headroom
