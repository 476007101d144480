// SPDX-License-Identifier: Apache-2.0
#include "screen/canvas.h"

#include <fmt/format.h>
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

namespace {

std::size_t total(const std::vector<Letter>& letters) {
  std::size_t columns = 0;
  for (const Letter& letter : letters) columns += letter.columns;
  return columns;
}

void cut(std::vector<Letter>& letters, std::size_t columns, bool utf8) {
  std::size_t width = total(letters);
  if (width <= columns) return;
  while (!letters.empty() && width + 1 > columns) {
    width -= letters.back().columns;
    letters.pop_back();
  }
  if (columns > 0) letters.push_back({utf8 ? "…" : "~", 1});
}

std::string codes_of(const Style& style) {
  std::string codes;
  const auto add = [&](int code) { codes += fmt::format("{}{}", codes.empty() ? "" : ";", code); };
  if (style.bold) add(1);
  if (style.faint) add(2);
  if (style.reverse) add(7);
  const auto add_colour = [&](Colour colour, int base) {
    if (colour == Colour::kDefault) return;
    const int number = static_cast<int>(colour);
    if (number >= kFirstOfPalette) {
      for (const int code : {base + 8, 5, number}) add(code);
    } else {
      add(colour == Colour::kGrey ? 60 + base : base + number - 1);
    }
  };
  add_colour(style.ink, 30);
  add_colour(style.ground, 40);
  return codes;
}

}  // namespace

std::size_t Canvas::put(std::size_t row, std::size_t column, std::string_view text, Style style, std::size_t columns) {
  if (row >= size_.rows || column >= size_.columns) return column;
  std::vector<Letter> letters = letters_of(text, look_.utf8);
  cut(letters, std::min(columns, size_.columns - column), look_.utf8);
  if (!look_.colour) style.ink = style.ground = Colour::kDefault;
  for (Letter& letter : letters) {
    picture_.lines[row][column] = {std::move(letter.text), style};
    if (letter.columns == 2) picture_.lines[row][column + 1] = {"", style};
    column += letter.columns;
  }
  return column;
}

void Canvas::put_cell(std::size_t row, std::size_t column, std::string_view letter, Style style) {
  if (row >= size_.rows || column >= size_.columns) return;
  if (!look_.colour) style.ink = style.ground = Colour::kDefault;
  Cell& cell = picture_.lines[row][column];
  cell.letter = letter;
  cell.style = style;
}

std::size_t Canvas::put_right(std::size_t row, std::size_t column, std::string_view text, Style style) {
  const std::size_t width = std::min(column, width_of(text, look_.utf8));
  put(row, column - width, text, style, width);
  return column - width;
}

void Canvas::restyle(std::size_t row, Style style) {
  if (row >= size_.rows) return;
  for (Cell& cell : picture_.lines[row]) cell.style = style;
}

void Canvas::is_about(std::size_t row, std::size_t rows, Spot spot) {
  for (std::size_t i = row; i < std::min(row + rows, size_.rows); ++i) picture_.spots[i] = spot;
}

std::size_t width_of(std::string_view text, bool utf8) { return total(letters_of(text, utf8)); }

std::string text_of(const std::vector<Line>& lines, bool colour) {
  std::string text;
  std::size_t kept = 0;  // up to the last row that has something
  for (const Line& line : lines) {
    std::size_t end = line.size();
    while (end > 0 && line[end - 1].letter == " " && line[end - 1].style.ground == Colour::kDefault) --end;
    Style style;
    for (std::size_t i = 0; i < end; ++i) {
      if (colour && line[i].style != style) {
        style = line[i].style;
        text += fmt::format("\033[0{}{}m", style == Style{} ? "" : ";", codes_of(style));
      }
      text += line[i].letter;
    }
    if (style != Style{}) text += "\033[0m";
    text += "\n";
    if (end > 0) kept = text.size();
  }
  text.resize(kept);
  return text;
}

}  // namespace headroom::screen
