// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::screen {

// The content of one place of a terminal's grid: a character with the marks that combine with it.
struct Letter {
  std::string text;
  std::size_t columns = 1;  // 2: East Asian wide, and pictures
};

// The letters of text from outside; what would act on the terminal is written as an escape first (base/visible.h).
// Where `utf8` is false, what is not ASCII becomes "?".
[[nodiscard]] std::vector<Letter> letters_of(std::string_view text, bool utf8);

// Columns of a character: 0 of one that combines with the one before, 1, or 2 (Unicode's East Asian Width W and F, by
// blocks).
[[nodiscard]] std::size_t columns_of(char32_t code);

// The terminal's own colours, which suit its background; grey is its bright black. A number from 16 on is that of
// xterm's palette of 256.
enum class Colour : std::uint8_t { kDefault, kGrey, kRed, kGreen, kYellow, kBlue, kMagenta, kCyan, kWhite };

inline constexpr int kFirstOfPalette = 16;

struct Style {
  Colour ink = Colour::kDefault, ground = Colour::kDefault;
  bool bold = false, faint = false, reverse = false;
  bool operator==(const Style&) const = default;
};
inline constexpr Style kPlain{}, kBold{.bold = true}, kFaint{.faint = true}, kChosen{.reverse = true},
    kAlarm{.ink = Colour::kRed, .bold = true};

struct Cell {
  std::string letter = " ";  // one column wide; or two, and the cell after it is ""
  Style style;
  bool operator==(const Cell&) const = default;
};
using Line = std::vector<Cell>;

struct Size {
  std::size_t columns = 80, rows = 24;
  bool operator==(const Size&) const = default;
};

// The subject of a row of a picture, for whoever points at it.
struct Spot {
  enum class Kind : std::uint8_t { kNothing, kGpu, kRow } kind = Kind::kNothing;
  std::size_t index = 0;  // of a GPU: position in Ledger::devices; of a row: in rows_of()
  bool operator==(const Spot&) const = default;
};
// Both by row.
struct Picture {
  std::vector<Line> lines;
  std::vector<Spot> spots;
};

// How a terminal can show it.
struct Look {
  bool colour = true, utf8 = true;
  bool palette = false;  // it has xterm's 256 colours
};

// A grid of cells. What does not fit is cut, and nothing is ever written outside.
class Canvas {
 public:
  Canvas(Size size, Look look)
      : size_(size),
        look_(look),
        picture_{std::vector<Line>(size.rows, Line(size.columns)), std::vector<Spot>(size.rows)} {}

  [[nodiscard]] Size size() const { return size_; }
  [[nodiscard]] Look look() const { return look_; }
  // Writes text on one row, in `columns` columns at most; cut text ends with "…" ("~" without UTF-8). Returns the
  // column after it.
  std::size_t put(std::size_t row, std::size_t column, std::string_view text, Style style = {},
                  std::size_t columns = SIZE_MAX);
  void put_cell(std::size_t row, std::size_t column, std::string_view letter, Style style);  // one column wide
  // So that it ends before `column`; returns where it begins.
  std::size_t put_right(std::size_t row, std::size_t column, std::string_view text, Style style = {});
  void restyle(std::size_t row, Style style);  // of a whole row
  void is_about(std::size_t row, std::size_t rows, Spot spot);
  [[nodiscard]] Picture take() && { return std::move(picture_); }

 private:
  Size size_;
  Look look_;
  Picture picture_;
};

[[nodiscard]] std::size_t width_of(std::string_view text, bool utf8 = true);  // columns

// The rows as text, without blanks at their ends and without empty rows at the end; with ANSI colours if wanted.
[[nodiscard]] std::string text_of(const std::vector<Line>& lines, bool colour);

}  // namespace headroom::screen
