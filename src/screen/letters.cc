// SPDX-License-Identifier: Apache-2.0
#include "screen/letters.h"

#include <algorithm>
#include <array>

#include "base/visible.h"

namespace headroom::screen {

namespace {

struct Block {
  char32_t first, last;
};
constexpr std::array kCombining{
    Block{0x0300, 0x036F}, Block{0x0483, 0x0489},   Block{0x0591, 0x05BD}, Block{0x064B, 0x065F},
    Block{0x0E31, 0x0E31}, Block{0x0E34, 0x0E3A},   Block{0x1AB0, 0x1AFF}, Block{0x1DC0, 0x1DFF},
    Block{0x200B, 0x200D}, Block{0x20D0, 0x20FF},   Block{0x302A, 0x302F}, Block{0xFE00, 0xFE0F},
    Block{0xFE20, 0xFE2F}, Block{0xE0100, 0xE01EF}, Block{0x2060, 0x2060}, Block{0xFEFF, 0xFEFF}};
constexpr std::array kWide{Block{0x1100, 0x115F},   Block{0x231A, 0x231B},   Block{0x23E9, 0x23EC},
                           Block{0x2E80, 0x303E},   Block{0x3041, 0xA4CF},   Block{0xA960, 0xA97C},
                           Block{0xAC00, 0xD7A3},   Block{0xF900, 0xFAFF},   Block{0xFE30, 0xFE6F},
                           Block{0xFF00, 0xFF60},   Block{0xFFE0, 0xFFE6},   Block{0x1F300, 0x1F64F},
                           Block{0x1F680, 0x1F6FF}, Block{0x1F900, 0x1F9FF}, Block{0x20000, 0x3FFFD}};

template <class Blocks>
bool is_in(const Blocks& blocks, char32_t code) {
  return std::any_of(blocks.begin(), blocks.end(),
                     [&](const Block& block) { return code >= block.first && code <= block.last; });
}

std::size_t bytes_of(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
}

char32_t code_of(std::string_view letter) {
  if (letter.size() == 1) return static_cast<unsigned char>(letter[0]);
  char32_t code = static_cast<unsigned char>(letter[0]) & (0x7FU >> letter.size());
  for (const char c : letter.substr(1)) code = code << 6U | (static_cast<unsigned char>(c) & 0x3FU);
  return code;
}

}  // namespace

std::size_t columns_of(char32_t code) {
  if (code < 0x0300) return 1;
  if (is_in(kCombining, code)) return 0;
  return is_in(kWide, code) ? 2 : 1;
}

std::vector<Letter> letters_of(std::string_view text, bool utf8) {
  const std::string shown = visible(text);  // valid UTF-8 from here on
  std::vector<Letter> letters;
  letters.reserve(shown.size());
  for (std::size_t i = 0; i < shown.size();) {
    const std::string_view letter = std::string_view(shown).substr(i, bytes_of(shown[i]));
    i += letter.size();
    const std::size_t columns = columns_of(code_of(letter));
    if (columns == 0) {
      if (utf8 && !letters.empty()) letters.back().text += letter;
    } else if (!utf8 && letter.size() > 1) {
      letters.push_back({"?", 1});
    } else {
      letters.push_back({std::string(letter), columns});
    }
  }
  return letters;
}

}  // namespace headroom::screen
