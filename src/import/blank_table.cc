// SPDX-License-Identifier: Apache-2.0
#include "import/blank_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/civil_time.h"
#include "base/strings.h"
#include "import/column_rows.h"
#include "import/log_reader.h"
#include "import/table.h"

namespace headroom {

namespace {

constexpr std::string_view kOtherSigns = ",;\t|{}<>=#\"";

bool is_unit_word(std::string_view word) {
  constexpr std::array<std::string_view, 8> kUnits{"%", "MiB", "MB", "GiB", "GB", "W", "C", "MHz"};
  return std::find(kUnits.begin(), kUnits.end(), word) != kUnits.end();
}

// The words of a line with those that are one cell together.
std::vector<std::string> cells_of_blanks(std::string_view line) {
  std::vector<std::string> cells;
  for (const std::string_view word : words_of(line)) {
    const bool of_time = !cells.empty() && parse_date(cells.back()) && parse_time_of_day(word);
    const bool unit = !cells.empty() && is_unit_word(word) && !cells.back().empty() && is_digit(cells.back().back());
    if (of_time || unit)
      cells.back() += fmt::format(" {}", word);
    else
      cells.emplace_back(word);
  }
  return cells;
}

bool has_column(const std::vector<std::string_view>& names, ColumnRole role) {
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
    const auto rule = csv_column(name);
    return rule && rule->role == role;
  });
}

// The rows of a table as CSV, and how many lines between them are none.
struct BlankRows {
  std::size_t columns = 0;
  std::string csv = {};
  std::size_t rows = 0, others = 0;

  void add(const std::vector<std::string>& cells) {
    const bool row = cells.size() == columns;
    ++(row ? rows : others);
    if (row) csv += fmt::format("{}\n", fmt::join(cells, ","));
  }
  [[nodiscard]] bool are_table(std::size_t fewest) const { return rows >= fewest && others <= rows / 10; }
};

bool has_other_signs(std::string_view line) { return line.find_first_of(kOtherSigns) != std::string_view::npos; }

}  // namespace

std::optional<std::string> csv_of_blanks(std::string_view text) {
  constexpr std::size_t kFewest = 3;
  LineCursor lines(text);
  while (lines.next() && trim(lines.line()).empty()) continue;
  const std::string_view header = lines.line();
  if (has_other_signs(header)) return std::nullopt;
  const std::vector<std::string_view> names = words_of(header);
  const bool told = has_column(names, ColumnRole::kMetric) && has_column(names, ColumnRole::kTimestamp);
  if (!told || !is_csv_header(names) || is_amd_header(header)) return std::nullopt;
  BlankRows table{names.size(), fmt::format("{}\n", fmt::join(names, ","))};
  while (lines.next()) {
    const std::string_view line = trim(lines.line());
    if (line.empty() || line == header) continue;
    auto cells = cells_of_blanks(line);
    if (cells.size() == names.size() + 1 && parse_number<std::int64_t>(cells[0])) cells.erase(cells.begin());
    if (cells[0].starts_with("..") || has_other_signs(line)) return std::nullopt;
    table.add(cells);
  }
  return table.are_table(kFewest) ? std::optional(std::move(table.csv)) : std::nullopt;
}

std::vector<std::string> row_of_blanks(std::string_view line) {
  if (has_other_signs(line)) return {};
  auto cells = cells_of_blanks(line);
  const bool row =
      cells.size() > 1 && is_time(cells[0]) &&
      std::all_of(cells.begin() + 1, cells.end(), [](const auto& cell) { return !cell.empty() && is_digit(cell[0]); });
  return row ? std::move(cells) : std::vector<std::string>();
}

std::optional<std::string> rows_of_blanks(std::string_view text, std::size_t cells) {
  BlankRows table{cells};
  LineCursor lines(text);
  while (lines.next())
    if (!trim(lines.line()).empty()) table.add(row_of_blanks(lines.line()));
  return table.are_table(1) ? std::optional(std::move(table.csv)) : std::nullopt;
}

}  // namespace headroom
