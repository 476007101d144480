// SPDX-License-Identifier: Apache-2.0
// InfluxDB's line protocol, as Telegraf writes it into a file: measurement,tag=value,… field=value,… time
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "import/log_reader.h"
#include "import/table.h"

namespace headroom {

namespace {

// The end of what `text` begins with: the first of `ends` that no backslash and no quotes hide.
std::size_t end_of_part(std::string_view text, char ends) {
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      quoted = !quoted;
    else if (!quoted && text[i] == ends)
      return i;
  }
  return text.size();
}

std::string_view take_part(std::string_view& text, char ends) {
  const auto end = end_of_part(text, ends);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

// "NVIDIA\ A100" and "\"A100\"" are NVIDIA A100 and A100; 97i is the whole number 97.
std::string plain_value(std::string_view value) {
  if (value.size() > 1 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
  const bool whole = value.size() > 1 && (value.back() == 'i' || value.back() == 'u') &&
                     parse_number<std::int64_t>(value.substr(0, value.size() - 1));
  if (whole) value.remove_suffix(1);
  std::string plain;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value[i] == '\\' && i + 1 < value.size()) ++i;
    plain += value[i];
  }
  return plain;
}

std::optional<LogTable::Row> row_of_point(std::string_view line) {
  std::string_view rest = trim(line);
  std::string_view tags = take_part(rest, ' '), fields = take_part(rest, ' ');
  const std::string_view time = trim(rest), measurement = take_part(tags, ',');
  constexpr std::size_t kFewestDigits = 10;
  const bool timed = time.size() >= kFewestDigits && std::all_of(time.begin(), time.end(), is_digit);
  if (!timed || fields.find('=') == std::string_view::npos || !measures_gpus(measurement)) return std::nullopt;
  LogTable::Row row{{"timestamp", std::string(time)}};
  for (std::string_view* part : {&tags, &fields})
    while (!part->empty()) {
      std::string_view value = take_part(*part, ',');
      const std::string name = plain_value(take_part(value, '='));
      if (!value.empty()) row[name] = plain_value(value);
    }
  return row;
}

bool has_reading(const LogTable::Row& row) {
  return std::any_of(row.begin(), row.end(), [](const auto& cell) {
    const auto rule = csv_column(cell.first);
    return rule && rule->role == ColumnRole::kMetric;
  });
}

}  // namespace

bool measures_gpus(std::string_view measurement) {
  constexpr std::array<std::string_view, 5> kGpuWords{"gpu", "nvidia", "dcgm", "rocm", "amd"};
  const std::string small = lower(measurement);
  return std::any_of(kGpuWords.begin(), kGpuWords.end(),
                     [&](std::string_view word) { return small.find(word) != std::string::npos; });
}

bool are_influx_points(std::string_view text) {
  constexpr std::uint32_t kLooked = 200;
  LineCursor lines(text);
  while (lines.next() && lines.number() <= kLooked)
    if (const auto row = row_of_point(lines.line()); row && has_reading(*row)) return true;
  return false;
}

Result<LogTable> table_of_influx(std::string_view text) {
  LogTable table;
  LineCursor lines(text);
  while (lines.next())
    if (const auto row = row_of_point(lines.line()); row && has_reading(*row)) table.add(*row);
  if (table.empty())
    return fail(Errc::kInvalidInput, "no point of a GPU with a time", "[[inputs.nvidia_smi]] in telegraf.conf");
  return table;
}

}  // namespace headroom
