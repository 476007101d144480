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

using Record = KeptLine;

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
      record.time = value.is_string() ? value.get<std::string>() : value.is_number() ? json_text(value) : "";
  }
  return line && !record.time.empty() ? std::optional(std::move(record)) : std::nullopt;
}

// docker's own form, which is most of such logs, without a value of JSON for each.
std::optional<Record> record_of_docker(std::string_view text) {
  constexpr std::string_view kLog = "{\"log\":\"", kTime = "\"time\":\"";
  if (!text.starts_with(kLog) || !text.ends_with('}')) return std::nullopt;
  Record record;
  std::size_t i = kLog.size();
  for (; i < text.size() && text[i] != '"'; ++i) {
    char c = text[i];
    if (c == '\\') {
      constexpr std::string_view kEscapes = "ntr\"\\/", kMeant = "\n\t\r\"\\/";
      const auto escape = ++i < text.size() ? kEscapes.find(text[i]) : std::string_view::npos;
      if (escape == std::string_view::npos) return std::nullopt;
      c = kMeant[escape];
    }
    record.line += c;
  }
  const auto time = text.rfind(kTime);
  if (time == std::string_view::npos || time < i) return std::nullopt;
  const std::string_view from = text.substr(time + kTime.size());
  record.time = from.substr(0, from.find('"'));
  return record;
}

std::vector<Record> records_of_json(std::string_view text) {
  std::vector<Record> records;
  const auto add = [&](std::string_view object) {
    auto record = record_of_docker(object);
    if (!record) record = record_of(parse_json<Json>(object));
    if (record) records.push_back(std::move(*record));
    return record.has_value();
  };
  if (text.starts_with('[')) {
    for (const std::string_view object : objects_of(text))
      if (!add(object)) return {};
    return records;
  }
  LineCursor lines(text);
  while (lines.next())
    if (!trim(lines.line()).empty() && !add(trim(lines.line())) && lines.complete()) return {};
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
std::optional<Record> record_of_cri(std::string_view line) {
  const auto stream = line.find(" std");
  if (stream == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(stream + 1);
  const bool written = rest.starts_with("stdout ") || rest.starts_with("stderr ");
  constexpr std::size_t kTag = 7, kLine = 9;  // "stdout F "
  if (!written || rest.size() < kLine - 1 || (rest[kTag] != 'F' && rest[kTag] != 'P')) return std::nullopt;
  return Record{std::string(line.substr(0, stream)), std::string(rest.substr(std::min(kLine, rest.size())))};
}

std::vector<Record> records_of_cri(std::string_view text) {
  std::vector<Record> records;
  LineCursor lines(text);
  while (lines.next()) {
    auto record = record_of_cri(lines.line());
    if (!record) return {};
    records.push_back(std::move(*record));
  }
  return records;
}

Record tidied(Record record) {
  while (!record.line.empty() && (record.line.back() == '\n' || record.line.back() == '\r')) record.line.pop_back();
  record.time = of_one_width(std::move(record.time));
  return record;
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
  for (Record& record : records) {
    const Record kept = tidied(std::move(record));
    plain += fmt::format("{} {}\n", kept.time, kept.line);
  }
  return plain;
}

std::optional<KeptLine> kept_line(std::string_view record) {
  record = trim(record);
  auto kept = record_of_docker(record);
  if (!kept && record.starts_with('{')) kept = record_of(parse_json<Json>(record));
  if (!kept && !record.starts_with('{')) kept = record_of_cri(record);
  if (!kept) return std::nullopt;
  return tidied(std::move(*kept));
}

}  // namespace headroom
