// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

[[nodiscard]] std::string_view trim(std::string_view text);                                // blanks at both ends
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);  // keeps empty fields
[[nodiscard]] std::string join(const std::vector<std::string>& parts, std::string_view separator);
[[nodiscard]] std::string lower(std::string_view text);  // ASCII only
[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The whole text as a number, or nothing.
template <class T>
[[nodiscard]] std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The candidate closest to `word` by edit distance, if it is close enough to be a slip of the hand; else "".
[[nodiscard]] std::string_view closest(std::string_view word, const std::vector<std::string_view>& candidates);

// One argument quoted so that a POSIX shell reads it back unchanged.
[[nodiscard]] std::string shell_quote(std::string_view argument);
[[nodiscard]] std::string shell_join(const std::vector<std::string>& argv);

}  // namespace headroom
