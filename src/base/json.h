// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
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
[[nodiscard]] Json parse_json(std::string_view text) {
  if (json_is_deeper(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace headroom
