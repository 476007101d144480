// SPDX-License-Identifier: Apache-2.0
#include "screen/canvas.h"

#include <fmt/format.h>

#include <algorithm>

#include "screen/letters.h"

namespace headroom::screen {

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
