// SPDX-License-Identifier: Apache-2.0
#include "import/unnamed_columns.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "base/visible.h"
#include "import/column_rows.h"

namespace headroom {

namespace {

bool is_bus_id(std::string_view cell) {
  return std::count(cell.begin(), cell.end(), ':') == 2 && cell.find('.') != std::string_view::npos &&
         cell.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
}

bool is_performance_state(std::string_view cell) {
  return cell.size() > 1 && cell.size() <= 3 && cell[0] == 'P' && std::all_of(cell.begin() + 1, cell.end(), is_digit);
}

// Seconds or ms since 1970, of this century.
bool is_unix_time(std::string_view cell) {
  constexpr double kFirst = 1e9, kLast = 4e9, kMilliseconds = 1000;
  const double number = parse_number<double>(cell).value_or(0);
  return (number > kFirst && number < kLast) || (number > kFirst * kMilliseconds && number < kLast * kMilliseconds);
}

// The name that a cell shows its column to have; "" where it may be any reading.
std::string_view shown_name(std::string_view cell) {
  if (cell.empty()) return "-";
  if (is_time(cell) || is_unix_time(cell)) return "timestamp";
  if (cell.starts_with("GPU-") || cell.starts_with("MIG-")) return "uuid";
  if (is_bus_id(cell)) return "pci.bus_id";
  if (is_performance_state(cell)) return "pstate";
  const bool number = !cell.empty() && (is_digit(cell[0]) || cell[0] == '-' || cell[0] == '[');
  if (!number) return cell.find_first_of(" 0123456789") == std::string_view::npos ? "" : "name";
  if (cell.ends_with('%')) return "utilization.gpu";
  return cell.ends_with(" W") ? "power.draw" : "";
}

}  // namespace

std::string columns_hint(const std::vector<std::string_view>& row) {
  constexpr std::size_t kLetters = 26, kLongest = 24;
  std::vector<std::string> names;
  std::vector<std::string> letters;  // "A is 71"
  for (const std::string_view cell : row) {
    std::string name(shown_name(trim(cell)));
    if (name == "utilization.gpu" && std::find(names.begin(), names.end(), name) != names.end())
      name = "utilization.memory";
    if (name != "-" && std::find(names.begin(), names.end(), name) != names.end()) name.clear();
    if (name.empty() && letters.size() >= kLetters) name = "-";
    if (name.empty()) {
      name = std::string(1, static_cast<char>('A' + letters.size()));
      letters.push_back(fmt::format("{} is {}", name, visible(trim(cell).substr(0, kLongest))));
    }
    names.push_back(std::move(name));
  }
  if (letters.empty()) return fmt::format("say it with --columns {}", fmt::join(names, ","));
  return fmt::format(
      "say it with --columns {}, with a name such as index, utilization.gpu or memory.used for each letter, and - for "
      "what is to be left out: {}",
      fmt::join(names, ","), fmt::join(letters, ", "));
}

}  // namespace headroom
