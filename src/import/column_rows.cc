// SPDX-License-Identifier: Apache-2.0
#include "import/column_rows.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>

#include "base/strings.h"
#include "import/log_date.h"
#include "import/log_reader.h"

namespace headroom {

namespace {

using Rows = std::vector<std::vector<std::string_view>>;

Rows rows_of(std::string_view text, std::size_t cells, char separator) {
  constexpr std::size_t kMost = 300;
  Rows rows;
  LineCursor lines(text);
  std::vector<std::string_view> row;
  while (rows.size() < kMost && lines.next()) {
    if (!lines.complete()) break;
    split_cells(lines.line(), separator, row);
    if (row.size() == cells) rows.push_back(row);
  }
  return rows;
}

// 1,000,000,000 s to 4,000,000,000 s, or as many in a finer unit.
bool is_unix_time(double number) {
  for (const double unit : {1.0, 1e3, 1e6, 1e9})
    if (number >= 1e9 * unit && number < 4e9 * unit) return true;
  return false;
}

bool is_time(std::string_view cell) {
  if (cell.size() < 8 || cell.find(':') == std::string_view::npos) return false;
  DateOrderFinder finder;
  return TimeReader({}).read(cell) || finder.add(cell);
}

bool are_times(const Rows& rows, std::size_t column) {
  double last = 0;
  for (const auto& row : rows) {
    if (is_time(row[column])) continue;
    const auto number = parse_number<double>(row[column]);
    constexpr double kSlack = 1e-6;  // of it: GPUs of one round are not always written in order
    if (!number || !is_unix_time(*number) || *number < last * (1 - kSlack)) return false;
    last = std::max(last, *number);
  }
  return true;
}

// "3", "cuda:3", "GPU 3"
std::optional<int> number_of_gpu(std::string_view cell) {
  const auto digits = cell.find_last_not_of("0123456789");
  const std::string_view before = cell.substr(0, digits == std::string_view::npos ? 0 : digits + 1);
  const bool named = before.empty() || lower(trim(before)).ends_with("gpu") || lower(before).ends_with("cuda:");
  const auto number = parse_number<int>(cell.substr(before.size()));
  return named && number && *number < 256 ? number : std::nullopt;
}

// A few numbers that come again and again; a count of the rows is none.
bool are_gpus(const Rows& rows, std::size_t column) {
  std::set<int> seen;
  for (const auto& row : rows) {
    const auto number = number_of_gpu(row[column]);
    if (!number) return false;
    seen.insert(*number);
  }
  return 2 * seen.size() <= rows.size();
}

bool may_name_gpus(std::string_view name) {
  constexpr std::array<std::string_view, 9> kNames{"id",     "idx", "index",   "gpu", "card",
                                                   "device", "dev", "ordinal", "slot"};
  return std::find(kNames.begin(), kNames.end(), lower(trim(name))) != kNames.end();
}

bool is_gpu_role(ColumnRole role) {
  return role == ColumnRole::kIndex || role == ColumnRole::kUuid || role == ColumnRole::kPciBusId ||
         role == ColumnRole::kSerial;
}

bool is_time_role(ColumnRole role) {
  return role == ColumnRole::kTimestamp || role == ColumnRole::kDate || role == ColumnRole::kTime;
}

}  // namespace

std::vector<std::string_view> told_by_rows(std::vector<std::string_view> names, std::string_view rows, char separator) {
  bool metric = false, time = false, gpu = false, host = false;
  for (const std::string_view name : names) {
    host = host || lower(name).find("cpu") != std::string::npos;
    const auto rule = csv_column(name);
    if (!rule) continue;
    metric = metric || rule->role == ColumnRole::kMetric;
    time = time || is_time_role(rule->role);
    gpu = gpu || rule->gpu || is_gpu_role(rule->role);
  }
  if (!metric) return names;
  for (std::string_view& name : names)
    if (lower(trim(name)) == "load" && !host) name = "gpu_load";
  if (time && gpu) return names;
  const Rows seen = rows_of(rows, names.size(), separator);
  if (seen.size() < 2) return names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty() || csv_column(names[i])) continue;
    if (!time && are_times(seen, i))
      names[i] = "timestamp", time = true;
    else if (!gpu && may_name_gpus(names[i]) && are_gpus(seen, i))
      names[i] = "index", gpu = true;
  }
  return names;
}

}  // namespace headroom
