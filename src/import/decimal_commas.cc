// SPDX-License-Identifier: Apache-2.0
#include "import/decimal_commas.h"

#include <algorithm>

#include "base/strings.h"
#include "import/column_rows.h"

namespace headroom {

namespace {

bool between_digits(std::string_view text, std::size_t at) {
  return at > 0 && at < text.size() && at + 1 < text.size() && is_digit(text[at - 1]) && is_digit(text[at + 1]);
}

// "1,234" may be a thousand or one and some, "1,2,3" anything; a time of day has a part of a second behind its comma.
bool is_decimal_comma(std::string_view cell) {
  const auto comma = cell.find(',');
  if (!between_digits(cell, comma) || cell.find(',', comma + 1) != std::string_view::npos) return false;
  if (cell.find(':') != std::string_view::npos) return true;
  const auto digits = std::min(cell.find_first_not_of("0123456789", comma + 1), cell.size()) - comma - 1;
  return digits != 3;
}

// With a point before each three digits.
bool is_grouped(std::string_view number) {
  const auto whole = number.substr(0, number.find(','));
  const auto first = whole.find('.');
  if (first == std::string_view::npos || first == 0 || first > 3 || (whole.size() - first) % 4 != 0) return false;
  if (whole[0] == '0') return false;  // "0.125"
  for (std::size_t i = first; i < whole.size(); ++i)
    if ((whole[i] == '.') != ((i - first) % 4 == 0)) return false;
  return true;
}
std::string_view number_in(std::string_view cell) {
  return cell.substr(0, std::min(cell.find_first_not_of("0123456789.,"), cell.size()));
}

}  // namespace

DecimalCommas::DecimalCommas(std::string_view head) {
  constexpr std::uint32_t kHeaderWithin = 200;  // lines
  LineCursor lines(head);
  const auto at_header = [&] {
    const std::string_view line = lines.line();
    return is_csv_header(told_by_rows(csv_cells(line), lines.at_hand(), separator_of(line)));
  };
  while (lines.next() && lines.number() < kHeaderWithin && !at_header()) continue;
  if (!at_header()) return;
  const std::string_view header = lines.line();
  everywhere_ = separator_of(header) != ',';
  if (everywhere_) look_for_groups(lines, separator_of(header));
  std::size_t cells = 1;
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (header[i] != ',') continue;
    if (i + 1 == header.size() || header[i + 1] != ' ') return;
    ++cells;
  }
  if (!everywhere_) cells_ = cells;
}

std::string_view DecimalCommas::pointed(std::string_view line) {
  if (!everywhere_) return line;
  if (grouped_cells_ != 0) line = without_group_points(line);
  places_.clear();
  for (std::size_t i = line.find(','); i != std::string_view::npos; i = line.find(',', i + 1))
    if (between_digits(line, i)) places_.push_back(i);
  return with_points(line);
}

std::string_view DecimalCommas::pointed_row(std::string_view line, std::size_t cells) {
  if (cells <= cells_ || line.find('"') != std::string_view::npos) return line;
  places_.clear();
  std::size_t count = 0;
  for (std::size_t begin = 0; begin <= line.size(); ++count) {
    const std::size_t end = std::min(line.find(", ", begin), line.size());
    const std::string_view cell = line.substr(begin, end - begin);
    if (const auto comma = cell.find(','); comma != std::string_view::npos) {
      if (!is_decimal_comma(cell)) return line;
      places_.push_back(begin + comma);
    }
    begin = end + 2;
  }
  return count == cells_ ? with_points(line) : line;
}

void DecimalCommas::look_for_groups(LineCursor& lines, char separator) {
  constexpr std::uint32_t kLooked = 200;  // lines
  std::vector<std::string_view> cells;
  bool commas = false;
  while (lines.next() && lines.number() < kLooked) {
    split_cells(lines.line(), separator, cells);
    for (const std::string_view cell : cells) {
      const std::string_view number = number_in(cell);
      if (cell.find(':') != std::string_view::npos) continue;
      commas = commas || between_digits(number, number.find(','));
      if (is_grouped(number)) continue;
      if (std::count(number.begin(), number.end(), '.') == 1) return;
    }
  }
  if (commas) grouped_cells_ = separator;
}

std::string_view DecimalCommas::without_group_points(std::string_view line) {
  ungrouped_.clear();
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(grouped_cells_, begin), line.size());
    const std::string_view cell = line.substr(begin, end - begin);
    const std::size_t from = std::min(cell.find_first_not_of(" \""), cell.size());
    const std::string_view number = number_in(cell.substr(from));
    for (std::size_t i = 0; i < cell.size(); ++i)
      if (cell[i] != '.' || i >= from + number.size() || !is_grouped(number)) ungrouped_ += cell[i];
    if (end < line.size()) ungrouped_ += grouped_cells_;
    begin = end + 1;
  }
  return ungrouped_;
}

std::string_view DecimalCommas::with_points(std::string_view line) {
  if (places_.empty()) return line;
  changed_ = line;
  for (const std::size_t at : places_) changed_[at] = '.';
  return changed_;
}

}  // namespace headroom
