// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace headroom {

// A JSON value whose numbers are kept as they were written, so that decimals stay exact.
struct JsonValue {
  enum class Kind : std::uint8_t { kNull, kBool, kNumber, kString, kList, kObject } kind = Kind::kNull;
  std::string text;  // of a number, a string or a bool
  std::vector<JsonValue> items;
  std::vector<std::pair<std::string, JsonValue>> members;  // in the order written

  [[nodiscard]] const JsonValue* find(std::string_view name) const;
  [[nodiscard]] std::optional<std::int64_t> integer() const;
  // Strings as they are; numbers and bools as written; nothing for the rest.
  [[nodiscard]] std::optional<std::string> plain() const;
};

// `what` of the error is "column C: …", counted in bytes from 1.
[[nodiscard]] Result<JsonValue> parse_json_line(std::string_view line);

// A decimal such as -12.50 or 1e3 as an integer in units of 10^-exp10; nothing if it is none or would lose digits.
[[nodiscard]] std::optional<std::int64_t> parse_decimal(std::string_view text, int exp10);

}  // namespace headroom
