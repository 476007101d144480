// SPDX-License-Identifier: Apache-2.0
#include "import/column_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>

#include "base/strings.h"
#include "import/column_words.h"
#include "import/log_date.h"
#include "import/log_reader.h"

namespace headroom {

namespace {

using Rows = std::vector<std::vector<std::string_view>>;

Rows rows_of(std::string_view text, const std::vector<std::string_view>& names, char separator) {
  constexpr std::size_t kMost = 300;
  Rows rows;
  LineCursor lines(text);
  std::vector<std::string_view> row;
  while (rows.size() < kMost && lines.next()) {
    if (!lines.complete()) break;
    split_cells(lines.line(), separator, row);
    if (row.size() == names.size() && row != names) rows.push_back(row);
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

// "30/08/2024", "2024-08-30", "30.8.24".
bool is_date(std::string_view cell) {
  const auto sign = cell.find_first_of("/-.");
  if (sign == std::string_view::npos || sign == 0 || cell.size() > 10 || !is_digit(cell.back())) return false;
  return std::count(cell.begin(), cell.end(), cell[sign]) == 2 &&
         std::all_of(cell.begin(), cell.end(), [&](char c) { return is_digit(c) || c == cell[sign]; });
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

// "3", "cuda:3", "GPU 3", "card3": the number at the end, and the word before it.
struct Named {
  std::string_view word;
  int number = 0;
};
std::optional<Named> named(std::string_view cell) {
  const auto digits = cell.find_last_not_of("0123456789");
  const std::string_view before = cell.substr(0, digits == std::string_view::npos ? 0 : digits + 1);
  const auto number = parse_number<int>(cell.substr(before.size()));
  return number && *number < 256 ? std::optional(Named{before, *number}) : std::nullopt;
}

// "Data" is a date in Portuguese and Italian, if its rows are some.
bool is_called_data(std::string_view name) { return lower(trim(name)) == "data"; }
bool are_dates(const std::vector<std::string_view>& names, const Rows& rows, std::size_t column) {
  return is_called_data(names[column]) &&
         std::all_of(rows.begin(), rows.end(), [&](const auto& row) { return is_date(row[column]); });
}

// A few numbers behind the same word, which come again and again; a count of the rows is none.
bool are_gpus(const Rows& rows, std::size_t column) {
  std::set<int> seen;
  for (const auto& row : rows) {
    const auto gpu = named(row[column]);
    if (!gpu || gpu->word != named(rows[0][column])->word) return false;
    seen.insert(gpu->number);
  }
  return 2 * seen.size() <= rows.size();
}

bool may_name_gpus(std::string_view name) {
  constexpr std::array<std::string_view, 9> kNames{"id",     "idx", "index",   "gpu", "card",
                                                   "device", "dev", "ordinal", "slot"};
  return std::find(kNames.begin(), kNames.end(), lower(trim(in_english(name)))) != kNames.end();
}

// Where rows share their times, what tells those of one time apart, again and again with the same few texts.
bool tells_apart(const Rows& rows, std::size_t time, std::size_t column) {
  std::set<std::string_view> seen, of_time;
  std::size_t most = 0, times = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i == 0 || rows[i][time] != rows[i - 1][time]) of_time.clear(), ++times;
    const std::string_view cell = rows[i][column];
    if (cell.empty() || !of_time.insert(cell).second) return false;
    seen.insert(cell);
    most = std::max(most, of_time.size());
  }
  return most > 1 && seen.size() == most && 3 * times <= 2 * rows.size() && times > 2;
}

bool is_gpu_role(ColumnRole role) {
  return role == ColumnRole::kIndex || role == ColumnRole::kUuid || role == ColumnRole::kPciBusId ||
         role == ColumnRole::kSerial;
}

bool is_time_role(ColumnRole role) {
  return role == ColumnRole::kTimestamp || role == ColumnRole::kDate || role == ColumnRole::kTime;
}

// The column that tells the GPUs apart, whatever it is called.
void tell_apart(std::vector<std::string_view>& names, const Rows& rows) {
  const auto is_clock = [](std::string_view name) {
    const auto rule = csv_column(name);
    return rule && is_time_role(rule->role);
  };
  const auto clock = std::find_if(names.begin(), names.end(), is_clock);
  if (clock == names.end()) return;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (is_of_no_gpu(names[i]) || csv_column(names[i]) ||
        !tells_apart(rows, static_cast<std::size_t>(clock - names.begin()), i))
      continue;
    names[i] = are_gpus(rows, i) ? "index" : "serial";
    return;
  }
}

// Beside a reading of a GPU and none of a CPU, "Load", "Load %" and "usage_percent" are the GPU's.
std::string_view use_of_gpu(std::string_view name) {
  constexpr std::array<std::string_view, 4> kUse{"load", "usage", "use", "busy"};
  const std::string bare = bare_header(name);
  if (std::find(kUse.begin(), kUse.end(), bare) == kUse.end()) return name;
  if (bare == lower(trim(name))) return "gpu_load";
  const auto rule = csv_column(fmt::format("gpu_{}", trim(name)));
  return rule && rule->metric == Metric::kGpuUtil ? "gpu_load_%" : name;
}

}  // namespace

bool is_row(const std::vector<std::string_view>& cells) {
  return std::any_of(cells.begin(), cells.end(),
                     [](std::string_view cell) { return !cell.empty() && is_digit(cell[0]) && is_time(cell); });
}

std::vector<std::string_view> told_by_rows(std::vector<std::string_view> names, std::string_view rows, char separator) {
  bool metric = false, time = false, gpu = false, host = false;
  const auto is_epoch = [](std::string_view name) { return lower(trim(name)) == "epoch"; };
  if (std::any_of(names.begin(), names.end(), is_epoch)) {
    const Rows seen = rows_of(rows, names, separator);
    for (std::size_t i = 0; i < names.size(); ++i)
      if (is_epoch(names[i]) && !are_times(seen, i)) names[i] = kEpochNumber;
  }
  for (const std::string_view name : names) {
    host = host || lower(name).find("cpu") != std::string::npos;
    const auto rule = csv_column(name);
    if (!rule) continue;
    metric = metric || rule->role == ColumnRole::kMetric;
    time = time || is_time_role(rule->role);
    gpu = gpu || rule->gpu || is_gpu_role(rule->role);
  }
  if (!metric || is_row(names)) return names;
  for (std::string_view& name : names)
    if (!host && !csv_column(name)) name = use_of_gpu(name);
  const bool data = std::any_of(names.begin(), names.end(), is_called_data);
  if (time && gpu && !data) return names;
  const Rows seen = rows_of(rows, names, separator);
  if (seen.size() < 2) return names;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (are_dates(names, seen, i)) names[i] = "date";
  if (time && gpu) return names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty() || csv_column(names[i])) continue;
    if (!time && are_times(seen, i))
      names[i] = "timestamp", time = true;
    else if (!gpu && may_name_gpus(names[i]) && are_gpus(seen, i))
      names[i] = "index", gpu = true;
  }
  if (!gpu) tell_apart(names, seen);
  return names;
}

}  // namespace headroom
