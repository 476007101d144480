// SPDX-License-Identifier: Apache-2.0
// What exporters answer Prometheus, again and again.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "import/log_reader.h"
#include "import/rows_by_metric.h"
#include "import/table.h"

namespace headroom {

namespace {

struct Sample {
  std::string_view name, value, time;
  std::map<std::string, std::string, std::less<>> labels;
};

// NAME{label="value",…} 12.5 1700000000000, as Prometheus' text format has it.
std::optional<Sample> sample_in(std::string_view line) {
  Sample sample;
  const std::size_t open = line.find('{'), close = line.rfind('}');
  if (line.starts_with('#') || open == std::string_view::npos || close == std::string_view::npos || close < open)
    return std::nullopt;
  sample.name = trim(line.substr(0, open));
  for (std::string_view rest = line.substr(open + 1, close - open - 1); !rest.empty();) {
    const std::size_t equals = rest.find("=\"");
    if (equals == std::string_view::npos) break;
    std::size_t end = equals + 2;
    while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? std::size_t{2} : std::size_t{1};
    end = std::min(end, rest.size());
    sample.labels[std::string(trim(rest.substr(0, equals)))] = rest.substr(equals + 2, end - equals - 2);
    rest.remove_prefix(std::min(rest.find_first_not_of("\", ", end), rest.size()));
  }
  const std::string_view numbers = trim(line.substr(close + 1));
  const std::size_t blank = std::min(numbers.find(' '), numbers.size());
  sample.value = numbers.substr(0, blank);
  sample.time = trim(numbers.substr(blank));
  return sample.value.empty() ? std::nullopt : std::optional(std::move(sample));
}

std::string_view label(const Sample& sample, std::string_view name) {
  const auto found = sample.labels.find(name);
  return found == sample.labels.end() ? std::string_view() : std::string_view(found->second);
}

template <class Put>
void put_facts(const Sample& sample, const Put& put) {
  for (const auto& [name, of] :
       {std::pair{"index", "gpu"}, std::pair{"index", "index"}, std::pair{"uuid", "UUID"}, std::pair{"uuid", "uuid"},
        std::pair{"name", "modelName"}, std::pair{"hostname", "Hostname"}})
    if (const auto value = label(sample, of); !value.empty()) put(name, value);
}

}  // namespace

bool are_scrapes(std::string_view text) {
  constexpr std::string_view kType = "# TYPE ";
  constexpr std::uint32_t kLooked = 400;
  LineCursor lines(text);
  while (lines.next() && lines.number() < kLooked) {
    const std::string_view line = lines.line();
    if (!line.starts_with(kType)) continue;
    const std::string_view name = line.substr(kType.size());
    if (!column_of_series(std::string(name.substr(0, name.find(' ')))).empty()) return true;
  }
  return false;
}

Result<LogTable> table_of_scrapes(std::string_view text) {
  RowsByMetric rows;
  std::string time;
  bool timed = false;
  LineCursor lines(text);
  while (lines.next()) {
    const std::string_view line = trim(lines.line());
    const bool describes = line.starts_with("# HELP") || line.starts_with("# TYPE");
    if (auto stamp = describes ? std::nullopt : time_of_line(line)) {
      time = std::move(*stamp);
      continue;
    }
    const auto sample = sample_in(line);
    const std::string column = sample ? column_of_series(std::string(sample->name)) : "";
    if (column.empty()) continue;
    const std::string_view at = sample->time.empty() ? std::string_view(time) : sample->time;
    timed = timed || !at.empty();
    const std::string gpu = fmt::format("{}{} {}{}", label(*sample, "gpu"), label(*sample, "index"),
                                        label(*sample, "UUID"), label(*sample, "uuid"));
    rows.add({label(*sample, "Hostname"), gpu, at, column, sample->value},
             [&](const auto& put) { put_facts(*sample, put); });
  }
  const bool once = !timed && !rows.several();
  LogTable table = rows.table();
  if (table.empty() || once)
    return fail(Errc::kInvalidInput,
                once && !table.empty() ? "one answer of dcgm-exporter: readings of one moment" : "no reading of a GPU",
                "ask Prometheus for a range: curl "
                "'http://HOST:9090/api/v1/query_range?query={__name__=~\"DCGM_FI_.*\"}&start=…&end=…&step=1'");
  return table;
}

}  // namespace headroom
