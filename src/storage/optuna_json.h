// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "model/study.h"

namespace headroom {

using Json = nlohmann::json;

// The text as Python's json.dumps() writes values: JSON, and NaN, Infinity and -Infinity as bare words, which become
// numbers. Discarded (is_discarded()) where it is none, or is nested too deep.
[[nodiscard]] Json parse_python_json(std::string_view text);

// The value of `key`, or null: `object` may be anything.
[[nodiscard]] const Json& member(const Json& object, const char* key);

[[nodiscard]] std::optional<double> number_of(const Json& value);
[[nodiscard]] std::optional<std::int64_t> integer_of(const Json& value);  // nothing where it does not fit
[[nodiscard]] std::optional<std::string_view> text_of(const Json& value);

// The space that a parameter of that name is drawn from, read from the JSON text that Optuna keeps of it: Float-, Int-
// and CategoricalDistribution, and the five classes before Optuna 3.0. Nothing where it is no such text.
[[nodiscard]] std::optional<ParameterSpace> parse_distribution(std::string_view name, std::string_view text);

// Whether a parameter that was drawn from `before` in one trial may be drawn from `now` in another: the same kind and
// scale, and for categories the same choices. Optuna refuses it otherwise.
[[nodiscard]] bool are_compatible(const ParameterSpace& before, const ParameterSpace& now);

// Whether `value` can be of that space: a number that is one, or the index of a choice.
[[nodiscard]] bool is_value_of(const ParameterSpace& space, double value);

}  // namespace headroom
