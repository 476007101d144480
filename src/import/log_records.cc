// SPDX-License-Identifier: Apache-2.0
#include "import/log_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/iso_time.h"
#include "base/json.h"
#include "base/strings.h"
#include "import/log_reader.h"
#include "import/table.h"

namespace headroom {

namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 8> kLines{"log",  "message", "msg",         "line",
                                                 "body", "text",    "textpayload", "content"};
constexpr std::array<std::string_view, 9> kTimes{
    "time", "timestamp", "@timestamp", "__realtime_timestamp", "ts", "tsns", "date", "datetime", "_time"};

template <std::size_t kSize>
bool is_called(const std::array<std::string_view, kSize>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), lower(trim(name))) != names.end();
}

struct Record {
  std::string time, line;
};

// As many digits of a second in each, so that what stands behind it begins at one place; a calendar's for numbers.
std::string of_one_width(std::string time) {
  if (time.find(':') == std::string::npos)
    if (const auto at = TimeReader({}).read(time)) time = iso_time(*at);
  constexpr std::size_t kSecondsEnd = 19, kDigits = 3;  // "2025-03-14T10:15:01"
  if (time.size() <= kSecondsEnd || time[4] != '-' || time[13] != ':') return time;
  std::size_t end = kSecondsEnd;
  std::string digits;
  if (time[end] == '.')
    for (++end; end < time.size() && is_digit(time[end]); ++end) digits += time[end];
  digits.resize(kDigits, '0');
  return fmt::format("{}.{}{}", time.substr(0, kSecondsEnd), digits, time.substr(end));
}

std::optional<Record> record_of(const Json& object) {
  if (!object.is_object()) return std::nullopt;
  Record record;
  bool line = false;
  for (const auto& [name, value] : object.items()) {
    if (value.is_string() && !line && is_called(kLines, name))
      record.line = value.get<std::string>(), line = true;
    else if (record.time.empty() && is_called(kTimes, name))
      record.time = value.is_string() ? value.get<std::string>() : value.is_number() ? value.dump() : "";
  }
  return line && !record.time.empty() ? std::optional(std::move(record)) : std::nullopt;
}

std::vector<Record> records_of_json(std::string_view text) {
  std::vector<Record> records;
  const auto add = [&](const Json& object) {
    auto record = record_of(object);
    if (record) records.push_back(std::move(*record));
    return record.has_value();
  };
  if (text.starts_with('[')) {
    for (const std::string_view object : objects_of(text))
      if (!add(parse_json<Json>(object))) return {};
    return records;
  }
  LineCursor lines(text);
  while (lines.next())
    if (!trim(lines.line()).empty() && !add(parse_json<Json>(lines.line())) && lines.complete()) return {};
  return records;
}

std::string without_doubled_quotes(std::string_view cell) {
  std::string plain;
  for (std::size_t i = 0; i < cell.size(); ++i) {
    plain += cell[i];
    if (cell[i] == '"' && i + 1 < cell.size() && cell[i + 1] == '"') ++i;
  }
  return plain;
}

std::vector<Record> records_of_table(std::string_view text) {
  LineCursor lines(text);
  if (!lines.next()) return {};
  const char separator = separator_of(lines.line());
  std::vector<std::string_view> cells;
  split_cells(lines.line(), separator, cells);
  const std::size_t count = cells.size();
  std::size_t time = count, line = count;
  for (std::size_t i = 0; i < count; ++i) {
    if (line == count && is_called(kLines, cells[i])) line = i;
    if (time == count && is_called(kTimes, cells[i])) time = i;
  }
  if (time == count || line == count) return {};
  std::vector<Record> records;
  while (lines.next()) {
    split_cells(lines.line(), separator, cells);
    if (cells.size() == count) records.push_back({std::string(cells[time]), without_doubled_quotes(cells[line])});
  }
  return records;
}

// "2025-09-02T08:00:00.123456789Z stdout F 0, 97 %", as containerd and CRI-O keep a container's lines.
std::vector<Record> records_of_cri(std::string_view text) {
  std::vector<Record> records;
  LineCursor lines(text);
  while (lines.next()) {
    const std::string_view line = lines.line();
    const auto stream = line.find(" std");
    if (stream == std::string_view::npos) return {};
    const std::string_view rest = line.substr(stream + 1);
    const bool written = rest.starts_with("stdout ") || rest.starts_with("stderr ");
    constexpr std::size_t kTag = 7, kLine = 9;  // "stdout F "
    if (!written || rest.size() < kLine - 1 || (rest[kTag] != 'F' && rest[kTag] != 'P')) return {};
    records.push_back({std::string(line.substr(0, stream)), std::string(rest.substr(std::min(kLine, rest.size())))});
  }
  return records;
}

// The newest first, as Grafana shows them.
bool fall(const std::vector<Record>& records) {
  const auto first = TimeReader({}).read(records.front().time), last = TimeReader({}).read(records.back().time);
  return first && last && *last < *first;
}

}  // namespace

std::optional<std::string> lines_of_records(std::string_view text) {
  const std::string_view begin = trim(text.substr(0, 256));
  const bool json = begin.starts_with('{') || begin.starts_with('[');
  // A monitor's own JSON may have a message beside its readings.
  if (json && (begin.find('"') == std::string_view::npos || are_json_rows(text.substr(0, 4096)))) return std::nullopt;
  std::vector<Record> records = json ? records_of_json(trim(text)) : records_of_table(text);
  if (!json && records.empty()) records = records_of_cri(text);
  if (records.empty() || !TimeReader({}).read(records.front().time)) return std::nullopt;
  if (fall(records)) std::reverse(records.begin(), records.end());
  std::string plain;
  for (const Record& record : records) {
    std::string_view line = record.line;
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
    plain += fmt::format("{} {}\n", of_one_width(record.time), line);
  }
  return plain;
}

}  // namespace headroom
