// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace headroom {

// What people and programs nest is a few levels deep; the library takes a level of the stack for each when it writes
// a value out or destroys it.
inline constexpr std::size_t kDeepestJson = 64;

// Whether lists and objects are nested more than `most` deep. Right for valid JSON; true or false for other text.
[[nodiscard]] bool json_is_deeper(std::string_view text, std::size_t most = kDeepestJson);

// The text as a value of `Json` (nlohmann::json or ordered_json); discarded (is_discarded()) where it is no JSON or is
// nested too deep.
template <class Json>
[[nodiscard]] Json parse_json(std::string_view text);

// The value as text: in one line, or with `indent` blanks a level. What is not UTF-8 is replaced: names of files and
// tasks may hold anything.
template <class Json>
[[nodiscard]] std::string json_text(const Json& json, int indent = -1);

// The same, with what is not ASCII as \u escapes.
template <class Json>
[[nodiscard]] std::string ascii_json_text(const Json& json, int indent = -1);

// The library's parser and writer are compiled once, for both kinds of values: they are large.
extern template nlohmann::json parse_json<nlohmann::json>(std::string_view);
extern template nlohmann::ordered_json parse_json<nlohmann::ordered_json>(std::string_view);
extern template std::string json_text<nlohmann::json>(const nlohmann::json&, int);
extern template std::string json_text<nlohmann::ordered_json>(const nlohmann::ordered_json&, int);
extern template std::string ascii_json_text<nlohmann::json>(const nlohmann::json&, int);
extern template std::string ascii_json_text<nlohmann::ordered_json>(const nlohmann::ordered_json&, int);

}  // namespace headroom
