// SPDX-License-Identifier: Apache-2.0
// Lines that a monitor of one's own printed or logged, each with a time in front and readings by their names.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "base/civil_time.h"
#include "base/strings.h"
#include "import/log_column.h"
#include "import/log_reader.h"
#include "import/table.h"

namespace headroom {

namespace {

constexpr std::size_t kLongestMonitorLine = 1000;

bool is_number_part(char c) { return is_digit(c) || c == '.'; }
bool is_unit_part(char c) { return c == '%' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

// "PM" and "+02:00" behind a time are of it; "INFO" and "GPU" are not, though a zone may be called so.
bool belongs_to_time(std::string_view word) {
  const std::string small = lower(word);
  return small == "am" || small == "pm" || (word.size() > 2 && (word[0] == '+' || word[0] == '-') && is_digit(word[1]));
}

// "25/11/15 10:30:15" before "INFO Executor:" is how Log4j has it, as Spark sets it up: the year stands first.
void put_year_first(std::string& time, std::string_view behind) {
  constexpr std::array<std::string_view, 6> kLevels{"INFO", "WARN", "ERROR", "DEBUG", "TRACE", "FATAL"};
  const auto words = words_of(behind.substr(0, 100));
  const bool level = words.size() > 1 && std::find(kLevels.begin(), kLevels.end(), words[0]) != kLevels.end() &&
                     words[1].ends_with(':') && words[1][0] >= 'A' && words[1][0] <= 'Z';
  constexpr std::size_t kDate = 8;
  if (!level || time.size() <= kDate || time[2] != '/' || time[5] != '/' || time[kDate] != ' ') return;
  time = fmt::format("20{}-{}-{}{}", time.substr(0, 2), time.substr(3, 2), time.substr(6, 2), time.substr(kDate));
}

// "[rank0]: 2025-…", "[INFO] 2025-…": what stands in brackets before a time and is none.
std::string_view behind_brackets(std::string_view line) {
  const auto close = line.starts_with('[') ? line.find(']') : std::string_view::npos;
  constexpr std::size_t kLongest = 24;
  if (close > kLongest || line.substr(0, close).find_first_of(":/") != std::string_view::npos) return line;
  if (std::count_if(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(close), is_digit) > 3) return line;
  line.remove_prefix(std::min(line.find_first_not_of(": ", close + 1), line.size()));
  return line;
}

// Words as a time: without the signs behind them, and with a point for the comma of Python's logging.
std::string as_time(std::string_view words) {
  std::string time(words);
  while (!time.empty() && std::string_view("]|:,-").find(time.back()) != std::string_view::npos) time.pop_back();
  const auto comma = time.find(',');
  if (comma != std::string::npos && comma + 1 < time.size() && is_digit(time[comma + 1])) time[comma] = '.';
  return time;
}

}  // namespace

std::optional<std::pair<std::string, std::string_view>> time_in_front(std::string_view line) {
  constexpr int kMostWords = 6;  // "Mon Feb  3 10:00:00 UTC 2025"
  constexpr std::ptrdiff_t kDigitsOfATime = 10;
  line = behind_brackets(trim(line));
  if (line.starts_with('[')) line.remove_prefix(1);
  std::optional<std::pair<std::string, std::string_view>> found;
  std::size_t end = 0;
  for (int words = 0; words < kMostWords && end < line.size(); ++words) {
    const std::size_t begin = std::min(line.find_first_not_of(' ', end), line.size());
    end = std::min(line.find(' ', begin), line.size());
    if (found && !belongs_to_time(line.substr(begin, end - begin))) break;
    std::string front = as_time(line.substr(0, end));
    if (front.find(':') == std::string::npos && std::count_if(front.begin(), front.end(), is_digit) < kDigitsOfATime)
      continue;
    auto time = time_of_line(front);
    if (!time && !found && parse_time_of_day(front)) time = std::move(front);
    if (time) found.emplace(std::move(*time), line.substr(end));
  }
  if (found) put_year_first(found->first, found->second);
  return found;
}

namespace {

// A GPU that a line names: "GPU 0", "gpu=1", "GPU2:"; "gpu=87%" is none.
struct NamedGpu {
  std::size_t begin = 0, end = 0;  // of the words in the line
  std::string index;
};
std::vector<NamedGpu> gpus_in(std::string_view text) {
  std::vector<NamedGpu> gpus;
  const std::string small = lower(text);
  for (std::size_t at = small.find("gpu"); at != std::string::npos; at = small.find("gpu", at + 3)) {
    std::size_t begin = at + 3;
    if (begin < small.size() && std::string_view(" =:#_[").find(small[begin]) != std::string_view::npos) ++begin;
    std::size_t end = begin;
    while (end < small.size() && is_digit(small[end])) ++end;
    const bool goes_on = end < small.size() && (small[end] == '.' || is_unit_part(small[end]));
    if (end > begin && !goes_on && (at == 0 || !is_unit_part(small[at - 1])))
      gpus.push_back({at, end, small.substr(begin, end - begin)});
  }
  return gpus;
}

// What `rest` begins with; it is what stands behind that then.
struct Quantity {
  std::string_view number, unit;
};
Quantity take_quantity(std::string_view& rest) {
  Quantity quantity;
  std::size_t end = 0;
  while (end < rest.size() && is_number_part(rest[end])) ++end;
  quantity.number = rest.substr(0, end);
  rest.remove_prefix(end);
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  for (end = 0; end < rest.size() && is_unit_part(rest[end]);) ++end;
  quantity.unit = rest.substr(0, end);
  rest = trim(rest.substr(end));
  return quantity;
}

// "10240/24576MB", "242 W / 350 W": the unit of the whole may be that of both.
struct PartOfWhole {
  Quantity used, whole;
};
PartOfWhole take_part_of_whole(std::string_view& rest) {
  PartOfWhole part{.used = take_quantity(rest), .whole = {}};
  if (!rest.starts_with('/')) return part;
  rest = trim(rest.substr(1));
  part.whole = take_quantity(rest);
  if (part.used.unit.empty()) part.used.unit = part.whole.unit;
  return part;
}

// What stands before "=" is a name by its last word; before ":" by all of them, or from "GPU" on: "INFO GPU Util".
std::string_view name_before(std::string_view before, char sign) {
  constexpr std::array<std::string_view, 6> kOtherParts{"cpu", "ram", "system", "host", "disk", "net"};
  const std::string small = lower(before);
  for (const std::string_view word : split(small, ' '))
    if (std::find(kOtherParts.begin(), kOtherParts.end(), word) != kOtherParts.end()) return "";
  const std::size_t from = sign == '=' ? small.rfind(' ') : small.rfind("gpu");
  return from == std::string::npos ? before : trim(before.substr(from));
}

// The column of a reading, by its name and unit; a word behind the number that is no unit counts for nothing.
std::string column_of(std::string_view name, std::string_view unit) {
  for (const std::string& header : {fmt::format("{} [{}]", name, unit), std::string(name)}) {
    const auto rule = csv_column(header);
    if (rule && rule->role == ColumnRole::kMetric && !rule->gpu) return header;
  }
  return "";
}

// "util=87% mem=10240/24576MB", "Util: 87 % | Power: 242 W / 350 W".
void put_readings(std::string_view text, LogTable::Row& row) {
  std::size_t begin = 0;  // of the words before the next sign
  for (std::size_t at = text.find_first_of("=:"); at != std::string_view::npos; at = text.find_first_of("=:", at + 1)) {
    std::string_view rest = text.substr(at + 1);
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    if (rest.empty() || !is_digit(rest[0])) continue;
    std::string_view before = text.substr(begin, at - begin);
    if (const auto sign = before.find_last_of("|,;()[]{}:="); sign != std::string_view::npos)
      before.remove_prefix(sign + 1);
    before = trim(before);
    const auto [used, total] = take_part_of_whole(rest);
    begin = at + 1 + used.number.size();
    const std::string column = column_of(name_before(before, text[at]), used.unit);
    if (column.empty()) continue;
    row[column] = used.number;
    const auto metric = csv_column(column)->metric;
    if (total.number.empty() || (metric != Metric::kMemoryUsed && metric != Metric::kPower)) continue;
    row[fmt::format("{} [{}]", metric == Metric::kPower ? "power.limit" : "memory.total", total.unit)] = total.number;
  }
}

// "87% | 30245MB / 40960MB | 65C | 301W" and "87% util, 61 C": readings by their units alone, or with a name behind. A
// share alone may be of anything: it counts beside memory and its whole, or two readings of other units.
void put_by_units(std::string_view text, LogTable::Row& row) {
  struct OfUnit {
    std::string_view unit, column, whole;
  };
  constexpr std::array<OfUnit, 8> kUnits{{{"%", "utilization.gpu", ""},
                                          {"mib", "memory.used", "memory.total"},
                                          {"mb", "memory.used", "memory.total"},
                                          {"gib", "memory.used", "memory.total"},
                                          {"gb", "memory.used", "memory.total"},
                                          {"w", "power.draw", "power.limit"},
                                          {"c", "temperature.gpu", ""},
                                          {"mhz", "clocks.sm", ""}}};
  LogTable::Row found;
  std::vector<std::string> twice;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of("|,;()[]", begin), text.size());
    std::string_view rest = text.substr(begin, end - begin);
    begin = end + 1;
    rest.remove_prefix(std::min(rest.find_first_not_of(" :-"), rest.size()));
    if (rest.empty() || !is_digit(rest[0])) continue;
    const auto [used, whole] = take_part_of_whole(rest);
    const std::string unit = lower(used.unit);
    const auto known = std::find_if(kUnits.begin(), kUnits.end(), [&](const OfUnit& u) { return u.unit == unit; });
    if (known == kUnits.end()) continue;
    const std::string column =
        rest.empty() ? fmt::format("{} [{}]", known->column, used.unit) : column_of(rest, used.unit);
    if (column.empty()) continue;
    if (!found.emplace(column, used.number).second) twice.push_back(column);
    if (!whole.number.empty() && !known->whole.empty())
      found.emplace(fmt::format("{} [{}]", known->whole, used.unit), whole.number);
  }
  for (const std::string& column : twice) found.erase(column);
  constexpr std::size_t kFewest = 3;
  if (found.size() >= kFewest) row.merge(found);
}

// "util 70% | mem 9000/24576 MiB": as with a sign between a name and its number, where a unit stands behind that.
void put_signs(std::string& text) {
  constexpr std::array<std::string_view, 9> kNames{"util", "utilization", "usage", "load",       "mem",
                                                   "vram", "memory",      "power", "temperature"};
  const std::string small = lower(text);
  for (const std::string_view name : kNames)
    for (auto at = small.find(name); at != std::string::npos; at = small.find(name, at + name.size())) {
      const std::size_t blank = at + name.size();
      const auto behind = small.find_first_not_of("0123456789. ", blank);
      const bool alone = at == 0 || !is_unit_part(small[at - 1]);
      const bool number = blank + 1 < small.size() && small[blank] == ' ' && is_digit(small[blank + 1]);
      if (alone && number && behind != std::string::npos && (is_unit_part(small[behind]) || small[behind] == '/'))
        text[blank] = '=';
    }
}

// A row for each GPU that the words name, or one.
std::vector<LogTable::Row> rows_of_words(std::string_view words) {
  std::vector<LogTable::Row> rows;
  std::string text(words);
  const auto gpus = gpus_in(text);
  for (const NamedGpu& gpu : gpus) std::fill(text.data() + gpu.begin, text.data() + gpu.end, '|');
  put_signs(text);
  for (std::size_t i = 0; i < std::max<std::size_t>(1, gpus.size()); ++i) {
    const std::size_t begin = i == 0 ? 0 : gpus[i].begin;
    const std::size_t end = i + 1 < gpus.size() ? gpus[i + 1].begin : text.size();
    LogTable::Row row;
    put_readings(std::string_view(text).substr(begin, end - begin), row);
    if (row.empty() && !gpus.empty()) put_by_units(std::string_view(text).substr(begin, end - begin), row);
    if (row.empty()) continue;
    if (!gpus.empty()) row["index"] = gpus[i].index;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<LogTable::Row> rows_of_line(std::string_view line) {
  const auto front = line.size() < kLongestMonitorLine ? time_in_front(line) : std::nullopt;
  if (!front) return {};
  auto rows = rows_of_words(front->second);
  for (LogTable::Row& row : rows) row["timestamp"] = front->first;
  return rows;
}

bool are_of_a_gpu(const std::vector<LogTable::Row>& rows, std::string_view line) {
  if (rows.empty() || lower(line).find("gpu") != std::string::npos) return !rows.empty();
  return std::any_of(rows[0].begin(), rows[0].end(), [](const auto& cell) {  // a "temp" may be a sampler's
    const auto rule = csv_column(cell.first);
    return rule && rule->role == ColumnRole::kMetric && rule->metric == Metric::kGpuUtil;
  });
}

// Whether one of the first lines after the other has readings of a GPU in the rows that `rows_of` makes of it.
template <class RowsOf>
bool are_readings(std::string_view text, const RowsOf& rows_of) {
  constexpr int kLooked = 40, kEnough = 3;
  int known = 0;
  LineCursor lines(text);
  while (lines.next() && lines.number() <= kLooked && known < kEnough)
    if (lines.line().size() < kLongestMonitorLine && are_of_a_gpu(rows_of(lines.line()), lines.line())) ++known;
  return known == kEnough;
}

}  // namespace

bool are_monitor_lines(std::string_view text) { return are_readings(text, rows_of_line); }

bool are_lines_without_times(std::string_view text) { return are_readings(text, rows_of_words); }

namespace {

// Readings below lines with nothing but a time, or where no line says when.
void add_untimed_lines(std::string_view text, LogTable& table) {
  std::string time;
  LineCursor lines(text);
  while (lines.next()) {
    const std::string_view line = lines.line();
    if (line.size() >= kLongestMonitorLine) continue;
    if (auto stamp = time_of_line(line); stamp && (!time.empty() || table.empty())) {
      time = std::move(*stamp);
      continue;
    }
    auto rows = rows_of_words(line);
    if (!are_of_a_gpu(rows, line)) continue;
    for (LogTable::Row& row : rows) {
      if (!time.empty()) row["timestamp"] = time;
      table.add(row);
    }
  }
}

}  // namespace

Result<LogTable> table_of_lines(std::string_view text) {
  LogTable table;
  if (are_monitor_lines(text)) {
    LineCursor lines(text);
    while (lines.next())
      for (const LogTable::Row& row : rows_of_line(lines.line())) table.add(row);
  } else {
    add_untimed_lines(text, table);
  }
  if (table.empty())
    return fail(Errc::kInvalidInput, "no line with a time and a reading of a GPU",
                "write them as 2025-06-03 14:02:11 GPU 0: util=87% mem=10240MB");
  return table;
}

}  // namespace headroom
