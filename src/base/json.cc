// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <nlohmann/json.hpp>

namespace headroom {

bool json_is_deeper(std::string_view text, std::size_t most) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\')
      ++i;
    else if (c == '"')
      in_string = !in_string;
    else if (!in_string && (c == '[' || c == '{') && ++depth > most)
      return true;
    else if (!in_string && (c == ']' || c == '}') && depth > 0)
      --depth;
  }
  return false;
}

template <class Json>
Json parse_json(std::string_view text) {
  if (json_is_deeper(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

template <class Json>
std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

template <class Json>
std::string ascii_json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

template nlohmann::json parse_json<nlohmann::json>(std::string_view);
template nlohmann::ordered_json parse_json<nlohmann::ordered_json>(std::string_view);
template std::string json_text<nlohmann::json>(const nlohmann::json&, int);
template std::string json_text<nlohmann::ordered_json>(const nlohmann::ordered_json&, int);
template std::string ascii_json_text<nlohmann::json>(const nlohmann::json&, int);
template std::string ascii_json_text<nlohmann::ordered_json>(const nlohmann::ordered_json&, int);

}  // namespace headroom
