// SPDX-License-Identifier: Apache-2.0
#include "import/decimal_commas.h"

#include <algorithm>
#include <deque>
#include <set>
#include <string>

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

// "1,234" within quotes may be a thousand or one and some; "0,351", "73,8" and "7312,512" are decimal.
bool is_surely_decimal(std::string_view number) {
  const auto comma = number.find(',');
  if (!between_digits(number, comma) || number.find_first_of(",.", comma + 1) != std::string_view::npos) return false;
  return number.size() - comma - 1 != 3 || comma > 3 || number[0] == '0';
}

bool is_of_digits(std::string_view cell) { return !cell.empty() && std::all_of(cell.begin(), cell.end(), is_digit); }

// A column without a number, or with one that has no decimals.
bool has_no_decimals(std::string_view name) {
  const auto rule = csv_column(name);
  if (!rule) return false;
  return rule->role != ColumnRole::kMetric && rule->role != ColumnRole::kFree &&
         !(rule->role == ColumnRole::kFact && rule->fact == DeviceFact::kMemoryTotal);
}

// "73,8" around its comma; "" for the seconds of a time of day.
std::string_view number_around(std::string_view line, std::size_t comma) {
  std::size_t begin = comma, end = comma + 1;
  while (begin > 0 && is_digit(line[begin - 1])) --begin;
  while (end < line.size() && is_digit(line[end])) ++end;
  return begin > 0 && line[begin - 1] == ':' ? std::string_view() : line.substr(begin, end - begin);
}

std::string_view number_in(std::string_view cell) {
  return cell.substr(0, std::min(cell.find_first_not_of("0123456789.,"), cell.size()));
}

}  // namespace

DecimalCommas::DecimalCommas(std::string_view head) {
  constexpr std::uint32_t kHeaderWithin = 200;  // lines
  LineCursor lines(head);
  std::deque<std::string> made;
  const auto at_header = [&] {
    const std::string_view line = lines.line();
    return is_csv_header(told_by_rows(csv_cells(line), lines.at_hand(), separator_of(line), made));
  };
  while (lines.next() && lines.number() < kHeaderWithin && !at_header()) continue;
  if (!at_header()) return;
  const std::string_view header = lines.line();
  everywhere_ = separator_of(header) != ',';
  if (!everywhere_) {
    look_for_quoted(lines.at_hand());
    look_for_pairs(told_by_rows(csv_cells(header), lines.at_hand(), ',', made), lines.at_hand());
  }
  if (everywhere_) look_for_groups(lines, separator_of(header));
  std::size_t cells = 1;
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (header[i] != ',') continue;
    if (i + 1 == header.size() || header[i + 1] != ' ') return;
    ++cells;
  }
  if (!everywhere_) cells_ = cells;
}

void DecimalCommas::look_for_quoted(std::string_view rows) {
  constexpr std::uint32_t kLooked = 200;  // lines
  LineCursor lines(rows);
  std::vector<std::string_view> cells;
  while (lines.next() && lines.number() < kLooked) {
    if (lines.line().find('"') == std::string_view::npos) continue;
    split_cells(lines.line(), ',', cells);
    for (const std::string_view cell : cells) {
      const std::string_view number = number_in(cell);
      if (number.find(',') == std::string_view::npos || cell.find(':') != std::string_view::npos) continue;
      quoted_ = quoted_ || is_surely_decimal(number);
      if (std::count(number.begin(), number.end(), ',') > 1 || number.find('.') != std::string_view::npos) {
        quoted_ = false;
        return;
      }
    }
  }
}

namespace {

// Digits of one column behind its comma, over many rows.
struct Decimals {
  std::size_t width = 0, steps = 0;  // digits; how often one more than in the row before, as of numbers of GPUs
  bool zero = false;                 // a first digit that is 0, as whole numbers have none
  std::set<std::string, std::less<>> seen;
  int last = -1;

  // False where a cell has no digits alone, or the second one not as many as before.
  bool add(std::string_view whole, std::string_view digits) {
    if (!is_of_digits(whole) || !is_of_digits(digits)) return false;
    if (!seen.empty() && width != digits.size()) return false;
    width = digits.size();
    zero = zero || (width > 1 && digits[0] == '0');
    const int number = parse_number<int>(digits).value_or(-1);
    if (number == last + 1) ++steps;
    last = number;
    seen.emplace(digits);
    return true;
  }
  [[nodiscard]] bool may_be() const { return width == 1 || zero; }
  [[nodiscard]] bool are_for_sure(std::size_t rows) const {
    constexpr std::size_t kOfOne = 8, kOfMore = 5;  // different ones; a box has GPUs 0 to 7
    return may_be() && 2 * steps < rows && seen.size() >= (width == 1 ? kOfOne : kOfMore);
  }
};

using CellsOfRows = std::vector<std::vector<std::string>>;

// "073", as no whole number is written.
bool has_zero_in_front(std::string_view cell) { return cell.size() > 1 && cell[0] == '0' && is_of_digits(cell); }

// Whether rows are such that these columns are two cells each.
bool are_pairs(const std::vector<bool>& pairs, const CellsOfRows& rows) {
  std::vector<Decimals> decimals(pairs.size());
  for (const auto& row : rows) {
    std::size_t cell = 0;
    for (std::size_t column = 0; column < pairs.size(); ++column, ++cell) {
      const std::string& whole = row[cell];
      if (has_zero_in_front(whole)) return false;
      if (pairs[column] && !decimals[column].add(whole, number_in(row[++cell]))) return false;
    }
  }
  bool sure = false;
  for (std::size_t column = 0; column < pairs.size(); ++column) {
    if (pairs[column] && !decimals[column].may_be()) return false;
    sure = sure || (pairs[column] && decimals[column].are_for_sure(rows.size()));
  }
  return sure;
}

// Of a log, as far as it is looked at; none where they have not as many cells each.
CellsOfRows cells_of_rows(std::string_view text) {
  constexpr std::size_t kLooked = 200;
  CellsOfRows rows;
  std::vector<std::string_view> cells;
  LineCursor lines(text);
  while (rows.size() < kLooked && lines.next() && lines.complete()) {
    if (trim(lines.line()).empty()) continue;
    if (lines.line().find('"') != std::string_view::npos) return {};
    split_cells(lines.line(), ',', cells);
    if (!rows.empty() && rows.front().size() != cells.size()) return {};
    rows.emplace_back(cells.begin(), cells.end());
  }
  return rows;
}

}  // namespace

// Rows that have some cells more than the header, which are decimals: of as many digits in each row, one, or with zeros
// in front, as no whole number has; and only one choice of columns makes them so. Cells of a second GPU would not be
// so.
void DecimalCommas::look_for_pairs(const std::vector<std::string_view>& names, std::string_view text) {
  constexpr std::size_t kFewestRows = 20, kMostColumns = 12;
  const CellsOfRows rows = cells_of_rows(text);
  if (rows.size() < kFewestRows || rows.front().size() <= names.size()) return;
  const std::size_t more = rows.front().size() - names.size();
  std::vector<std::size_t> numbers;  // columns that may have decimals
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!has_no_decimals(names[i])) numbers.push_back(i);
  if (more > numbers.size() || numbers.size() > kMostColumns) return;
  std::vector<bool> chosen(numbers.size());
  std::fill(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(more), true);
  std::size_t fitting = 0;
  do {
    std::vector<bool> pairs(names.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) pairs[numbers[i]] = chosen[i];
    if (are_pairs(pairs, rows) && ++fitting == 1) pairs_ = std::move(pairs);
  } while (std::prev_permutation(chosen.begin(), chosen.end()));
  if (fitting != 1) pairs_.clear();
}

// The row with points in its pairs; the row itself where it has other cells.
std::string_view DecimalCommas::pointed_pairs(std::string_view line) {
  if (line.find('"') != std::string_view::npos) return line;
  places_.clear();
  std::vector<std::string_view> cells;
  split_cells(line, ',', cells);
  std::size_t cell = 0;
  for (const bool pair : pairs_) {
    if (pair) {
      if (cell + 1 >= cells.size() || !is_of_digits(cells[cell])) return line;
      if (number_in(cells[cell + 1]).empty() || !is_digit(cells[cell + 1][0])) return line;
      places_.push_back(static_cast<std::size_t>(cells[cell + 1].data() - line.data()) - 1);
      if (line[places_.back()] != ',') return line;
      ++cell;
    }
    ++cell;
  }
  return cell == cells.size() ? with_points(line) : line;
}

std::string_view DecimalCommas::pointed(std::string_view line) {
  if (!pairs_.empty()) return pointed_pairs(line);
  if (quoted_ && line.find('"') != std::string_view::npos) {
    places_.clear();
    bool inside = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '"') inside = !inside;
      if (inside && line[i] == ',' && between_digits(line, i)) places_.push_back(i);
    }
    return with_points(line);
  }
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
  for (std::size_t i = 0; i < places_.size() && first_.empty(); ++i) first_ = number_around(line, places_[i]);
  changed_ = line;
  for (const std::size_t at : places_) changed_[at] = '.';
  return changed_;
}

}  // namespace headroom
