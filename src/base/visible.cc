// SPDX-License-Identifier: Apache-2.0
#include "base/visible.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/strings.h"

namespace headroom {

namespace {

struct Letter {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  // 0: no UTF-8
};

unsigned char byte_at(std::string_view text, std::size_t i) { return static_cast<unsigned char>(text[i]); }

Letter letter_at(std::string_view text) {
  const unsigned char first = byte_at(text, 0);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return {};
  std::uint32_t code = first & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte_at(text, i) & 0xC0U) != 0x80) return {};
    code = code << 6U | (byte_at(text, i) & 0x3FU);
  }
  const bool longer_than_needed = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return longer_than_needed || surrogate || code > 0x10FFFF ? Letter{} : Letter{code, bytes};
}

bool controls(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code <= 0x9F) ||  // C0, DEL, C1
         code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);  // line separators, marks of direction
}

std::string escaped(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Letter letter = letter_at(text);
    if (letter.bytes == 0)
      out += fmt::format("\\x{:02x}", byte_at(text, 0));
    else if (!controls(letter.code) || kept.find(text[0]) != std::string_view::npos)
      out += text.substr(0, letter.bytes);
    else
      out += letter.code < 0x80 ? fmt::format("\\x{:02x}", letter.code) : fmt::format("\\u{:04x}", letter.code);
    text.remove_prefix(letter.bytes == 0 ? 1 : letter.bytes);
  }
  return out;
}

}  // namespace

std::string visible_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const Letter letter = letter_at(json);
    const std::size_t bytes = std::max<std::size_t>(1, letter.bytes);
    if (letter.code >= 0x7F && controls(letter.code))
      out += fmt::format("\\u{:04x}", letter.code);
    else
      out += json.substr(0, bytes);
    json.remove_prefix(bytes);
  }
  return out;
}

std::string typed_word(std::string_view word) {
  if (visible(word) == word) return shell_quote(word);
  std::string text = "$'";
  while (!word.empty()) {
    const Letter letter = letter_at(word);
    const std::string_view bytes = word.substr(0, std::max<std::size_t>(1, letter.bytes));
    if (letter.code == '\n' || letter.code == '\t') {
      text += letter.code == '\n' ? "\\n" : "\\t";
    } else if (letter.bytes == 0 || controls(letter.code)) {
      for (const char byte : bytes) text += fmt::format("\\{:03o}", static_cast<unsigned char>(byte));
    } else {
      if (letter.code == '\'' || letter.code == '\\') text += '\\';
      text += bytes;
    }
    word.remove_prefix(bytes.size());
  }
  return text + "'";
}

std::string typed_line(const std::vector<std::string>& words) {
  std::vector<std::string> typed;
  for (const std::string& word : words) typed.push_back(typed_word(word));
  return join(typed, " ");
}

std::string visible(std::string_view text) { return escaped(text, ""); }
std::string visible_lines(std::string_view text) { return escaped(text, "\n\t"); }

}  // namespace headroom
