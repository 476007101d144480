// SPDX-License-Identifier: Apache-2.0
// What promtool query range prints: a line for each series, and its values below.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/strings.h"
#include "import/log_reader.h"
#include "import/table.h"

namespace headroom {

namespace {

constexpr std::string_view kArrow = " =>";

struct SampleLine {
  std::string_view value, time;
};

// "87 @[1762801200]", "87 @[1762801200.123]".
std::optional<SampleLine> sample_of(std::string_view line) {
  const auto at = line.find(" @[");
  if (at == std::string_view::npos || !line.ends_with(']')) return std::nullopt;
  const SampleLine sample{line.substr(0, at), line.substr(at + 3, line.size() - at - 4)};
  const bool numbers = parse_number<double>(sample.value) && parse_number<double>(sample.time);
  return numbers ? std::optional(sample) : std::nullopt;
}

// "NAME{gpu="0", instance="n3:9400"}" as members of JSON: values are quoted alike.
std::string as_members(std::string_view series) {
  const auto open = series.find('{');
  std::string members;
  if (const auto name = trim(series.substr(0, open)); !name.empty()) members = fmt::format("\"__name__\":\"{}\"", name);
  if (open == std::string_view::npos) return members;
  std::string_view rest = series.substr(open + 1);
  for (auto sign = rest.find("=\""); sign != std::string_view::npos; sign = rest.find("=\"")) {
    std::string_view key = trim(rest.substr(0, sign));
    if (key.starts_with(',')) key = trim(key.substr(1));
    std::size_t end = sign + 2;
    while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? std::size_t{2} : std::size_t{1};
    end = std::min(end, rest.size());
    members += fmt::format("{}\"{}\":\"{}\"", members.empty() ? "" : ",", key, rest.substr(sign + 2, end - sign - 2));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return members;
}

}  // namespace

bool are_promtool_series(std::string_view text) {
  LineCursor lines(text);
  bool series = false;
  while (lines.next()) {
    const std::string_view line = trim(lines.line());
    if (line.empty()) continue;
    if (series) return sample_of(line).has_value();
    if (!line.ends_with(kArrow) || line.find('{') == std::string_view::npos) return false;
    series = true;
  }
  return false;
}

std::string range_of_promtool(std::string_view text) {
  std::string json = R"({"data":{"resultType":"matrix","result":[)";
  LineCursor lines(text);
  bool series = false, values = false;
  while (lines.next()) {
    const std::string_view line = trim(lines.line());
    if (line.ends_with(kArrow)) {
      json += fmt::format("{}{{\"metric\":{{{}}},\"values\":[", series ? "]}," : "",
                          as_members(line.substr(0, line.size() - kArrow.size())));
      series = true, values = false;
    } else if (const auto sample = series ? sample_of(line) : std::nullopt) {
      json += fmt::format("{}[{},\"{}\"]", values ? "," : "", sample->time, sample->value);
      values = true;
    }
  }
  return json + (series ? "]}]}}" : "]}}");
}

}  // namespace headroom
