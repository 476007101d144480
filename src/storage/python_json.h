// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

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

}  // namespace headroom
