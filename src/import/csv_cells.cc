// SPDX-License-Identifier: Apache-2.0
// The cells of a line, and whether they are names of columns.
#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "import/column_rows.h"
#include "import/gpu_columns.h"
#include "import/log_reader.h"

namespace headroom {

namespace {

std::string_view blanks_off(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Where a quoted cell's closing quote is: separators before it do not count. Doubled quotes stay as they are; no column
// that is kept has any.
std::size_t closing_quote(std::string_view line, std::size_t open) {
  for (std::size_t i = open + 1; i < line.size(); ++i) {
    if (line[i] != '"') continue;
    if (i + 1 == line.size() || line[i + 1] != '"') return i;
    ++i;
  }
  return line.size();
}

}  // namespace

void split_cells(std::string_view line, char separator, std::vector<std::string_view>& cells) {
  cells.clear();
  const bool quotes = line.find('"') != std::string_view::npos;
  for (std::size_t begin = 0; begin <= line.size();) {
    std::size_t from = begin;
    while (quotes && from < line.size() && line[from] == ' ') ++from;
    if (quotes && from < line.size() && line[from] == '"') {
      const std::size_t close = closing_quote(line, from);
      cells.push_back(blanks_off(line.substr(from + 1, close - from - 1)));
      begin = std::min(line.find(separator, close), line.size()) + 1;
      continue;
    }
    const void* found =
        begin < line.size() ? std::memchr(line.data() + begin, separator, line.size() - begin) : nullptr;
    const std::size_t end =
        found ? static_cast<std::size_t>(static_cast<const char*>(found) - line.data()) : line.size();
    cells.push_back(blanks_off(line.substr(begin, end - begin)));
    begin = end + 1;
  }
}

char separator_of(std::string_view line) {
  char best = ',';
  const std::string_view all = blanks_off(line);
  const bool framed = all.starts_with('|') && all.ends_with('|') && std::count(all.begin(), all.end(), '|') > 2;
  if (framed) return '|';  // a table of Markdown
  for (const char c : {';', '\t'})
    if (std::count(line.begin(), line.end(), c) > std::count(line.begin(), line.end(), best)) best = c;
  return best;
}

std::vector<std::string_view> csv_cells(std::string_view line) {
  std::vector<std::string_view> cells;
  split_cells(line, separator_of(line), cells);
  return cells;
}

bool is_process_header(const std::vector<std::string_view>& names) {
  bool process = false, memory = false;
  for (const std::string_view name : names) {
    const std::string bare = bare_header(name);
    process = process || bare == "pid" || bare == "process_name" || bare == "process name" || bare == "process";
    const auto rule = csv_column(name);
    if (!rule || rule->role != ColumnRole::kMetric) continue;
    if (rule->metric != Metric::kMemoryUsed) return false;
    memory = true;
  }
  return process && memory;
}

bool is_csv_header(const std::vector<std::string_view>& names) {
  std::size_t known = 0;
  bool metric = false, time = false;  // "name" alone is in many tables
  bool of_gpu = false;
  for (const std::string_view name : names) {
    const auto one = of_host(name);
    const auto rule = csv_column(one ? one->name : name);
    if (!rule || rule->role == ColumnRole::kHost) continue;  // a host is in many tables, too
    ++known;
    metric = metric || rule->role == ColumnRole::kMetric;
    time = time || rule->role == ColumnRole::kTimestamp;
    of_gpu = of_gpu || (rule->role == ColumnRole::kMetric && lower(name).find("gpu") != std::string::npos);
  }
  const bool header =
      (metric && time) || (of_gpu && names.size() > 1) || ((metric || time) && known * 2 >= names.size());
  return header && !is_row(names) && !is_process_header(names);
}

}  // namespace headroom
