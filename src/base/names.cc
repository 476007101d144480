// SPDX-License-Identifier: Apache-2.0
#include "base/names.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/fnv.h"

namespace headroom {

namespace {

bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;  // U+0080 to U+009F
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Neither longer than needed, nor a surrogate, nor beyond the last.
  const unsigned char second = byte(1);
  const bool odd = (first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
                   (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90);
  return odd ? 0 : length;
}

std::string file_name_of(std::string_view text, std::size_t most) {
  std::string name;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at));
    const std::string_view character = text.substr(at, length);
    if (length == 0 || character == "/" || is_control(character))
      name += '-';
    else
      name += character;
    at += length == 0 ? 1 : length;
  }
  if (name.size() <= most) return name;
  const std::string hash = fmt::format("-{:08x}", fnv1a(text, kFnvBasis) >> 32);
  std::size_t kept = most - hash.size();
  while (kept > 0 && (static_cast<unsigned char>(name[kept]) & 0xc0) == 0x80) --kept;  // no half character
  return name.substr(0, kept) + hash;
}

bool fits_file_name(std::string_view text) { return file_name_of(text, text.size()) == text; }

}  // namespace headroom
