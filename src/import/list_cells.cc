// SPDX-License-Identifier: Apache-2.0
#include "import/list_cells.h"

#include <algorithm>

#include "base/strings.h"
#include "import/log_column.h"

namespace headroom {

namespace {

bool is_quote(char c) { return c == '\'' || c == '"'; }

std::string_view unquoted(std::string_view item) {
  const bool quoted = item.size() >= 2 && is_quote(item.front()) && item.back() == item.front();
  return quoted ? item.substr(1, item.size() - 2) : item;
}

bool is_item(std::string_view item) {
  if (item.starts_with('-')) item.remove_prefix(1);
  return !item.empty() && (is_digit(item[0]) || absence_of(item));
}

}  // namespace

bool begins_list(std::string_view cell) {
  if (cell.size() < 3 || (cell[0] != '[' && cell[0] != '(')) return false;
  const auto first = cell.find_first_not_of(" '\"", 1);
  return first != std::string_view::npos && is_digit(cell[first]);
}

std::vector<std::string_view> list_items(std::string_view cell) {
  cell = trim(cell);
  const bool list = cell.size() > 2 && ((cell.front() == '[' && cell.back() == ']') ||  //
                                        (cell.front() == '(' && cell.back() == ')'));
  if (!list) return {};
  cell = cell.substr(1, cell.size() - 2);
  const char between = cell.find(',') == std::string_view::npos ? ' ' : ',';
  constexpr std::size_t kMost = 256;  // GPUs that a log may have
  std::vector<std::string_view> items;
  bool number = false;
  for (std::size_t begin = 0; begin <= cell.size();) {
    const std::size_t end = std::min(cell.find(between, begin), cell.size());
    const std::string_view item = unquoted(trim(cell.substr(begin, end - begin)));
    begin = end + 1;
    if (item.empty() && (between == ' ' || end == cell.size())) continue;  // "(97,)"
    if (!is_item(item) || items.size() == kMost) return {};
    number = number || parse_number<double>(item).has_value() || item.find(' ') != std::string_view::npos;
    items.push_back(item);
  }
  return number ? items : std::vector<std::string_view>();
}

}  // namespace headroom
