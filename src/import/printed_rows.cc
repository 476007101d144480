// SPDX-License-Identifier: Apache-2.0
#include "import/printed_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/strings.h"
#include "import/log_reader.h"
#include "import/table.h"

namespace headroom {

namespace {

// What stands between the brackets of a line that is one tuple, list or object with its members, and its class.
struct Printed {
  std::string_view of_class, inside;
};

bool in_a_name(char c) { return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::optional<Printed> printed(std::string_view line) {
  line = trim(line);
  if (line.ends_with(',')) line.remove_suffix(1);
  const auto open = line.find_first_of("([");
  if (open == std::string_view::npos || line.size() < open + 2) return std::nullopt;
  if (line.back() != (line[open] == '(' ? ')' : ']')) return std::nullopt;
  const std::string_view name = line.substr(0, open);
  if (!std::all_of(name.begin(), name.end(), in_a_name) || (!name.empty() && line[open] == '[')) return std::nullopt;
  return Printed{name, line.substr(open + 1, line.size() - open - 2)};
}

// "datetime.datetime(2025, 1, 9, 20, 15)" as a time; nothing for other objects.
std::optional<std::string> time_of_python(std::string_view item) {
  const auto open = item.find('(');
  const std::string_view name = item.substr(0, open);
  if (open == std::string_view::npos || (name != "datetime.datetime" && name != "datetime")) return std::nullopt;
  std::vector<int> parts;
  for (const std::string_view part : split(item.substr(open + 1, item.size() - open - 2), ','))
    if (const auto number = parse_number<int>(trim(part))) parts.push_back(*number);
  if (parts.size() < 3) return std::nullopt;
  parts.resize(7, 0);  // what is zero at the end is not printed
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}", parts[0], parts[1], parts[2], parts[3], parts[4],
                     parts[5], parts[6]);
}

// The items between commas; nothing where brackets or quotes do not close. One list in another is one item.
std::vector<std::string_view> items_of(std::string_view text) {
  std::vector<std::string_view> items;
  std::size_t begin = 0, depth = 0;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      if (depth-- == 0) return {};
    } else if (c == ',' && depth == 0) {
      items.push_back(trim(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  if (quote != 0 || depth != 0) return {};
  if (const auto last = trim(text.substr(begin)); !last.empty()) items.push_back(last);
  return items;
}

// An item as a cell; nothing for what is no single value, but for a time and a list of numbers.
std::optional<std::string> cell_of(std::string_view item) {
  if (item == "None") return "";
  if (auto time = time_of_python(item)) return time;
  if (item.size() > 1 && (item[0] == '\'' || item[0] == '"') && item.back() == item[0])
    item = item.substr(1, item.size() - 2);
  if (item.find_first_of("{(\"") != std::string_view::npos) return std::nullopt;
  return std::string(item);
}

struct Row {
  std::string names, cells;  // as lines of CSV; names: "" where the members have none
};

std::optional<Row> row_of(std::string_view line) {
  const auto found = printed(line);
  const auto items = found ? items_of(found->inside) : std::vector<std::string_view>();
  if (items.size() < 2) return std::nullopt;
  Row row;
  bool number = false, first = true;
  for (std::string_view item : items) {
    if (!found->of_class.empty()) {
      const auto equals = item.find('=');
      if (equals == std::string_view::npos ||
          !std::all_of(item.begin(), item.begin() + static_cast<std::ptrdiff_t>(equals), in_a_name))
        return std::nullopt;
      (row.names += row.names.empty() ? "" : ",") += item.substr(0, equals);
      item = trim(item.substr(equals + 1));
    }
    const auto cell = cell_of(item);
    if (!cell) return std::nullopt;
    number = number || parse_number<double>(*cell).has_value();
    if (!first) row.cells += ',';
    first = false;
    put_quoted(*cell, row.cells);
  }
  return number ? std::optional(row) : std::nullopt;
}

// By its first lines.
bool are_printed_rows(std::string_view text) {
  constexpr std::uint32_t kLooked = 40;
  std::size_t rows = 0, others = 0;
  LineCursor lines(text);
  while (lines.number() < kLooked && lines.next())
    if (!trim(lines.line()).empty()) ++(row_of(lines.line()) ? rows : others);
  return rows > 0 && rows > others;
}

}  // namespace

std::optional<std::string> csv_of_printed(std::string_view text) {
  if (!are_printed_rows(text)) return std::nullopt;
  std::string csv, names;
  LineCursor lines(text);
  while (lines.next()) {
    const auto row = row_of(lines.line());
    if (row && row->names != names) (csv += names = row->names) += '\n';
    csv += row ? row->cells : std::string(lines.line());
    if (lines.complete()) csv += '\n';
  }
  return csv;
}

}  // namespace headroom
