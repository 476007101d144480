// SPDX-License-Identifier: Apache-2.0
// What tells one metric at a time: answers for Prometheus, again and again, and tables with a row per metric.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "base/strings.h"
#include "import/column_words.h"
#include "import/log_reader.h"
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
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
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

// Rows of GPUs that are filled metric by metric: one is whole when its GPU has a metric again, or at another time.
class RowsByMetric {
 public:
  // `facts` puts what else is known of the GPU into the row that begins.
  template <class Facts>
  void add(std::string_view host, std::string_view gpu, std::string_view time, std::string_view column,
           std::string_view value, const Facts& facts) {
    auto on_host = rows_.find(host);
    if (on_host == rows_.end()) on_host = rows_.emplace(host, Rows()).first;
    auto entry = on_host->second.find(gpu);
    if (entry == on_host->second.end()) entry = on_host->second.emplace(gpu, LogTable::Line()).first;
    LogTable::Line& row = entry->second;
    const std::size_t place = table_.column(column);
    const auto before = row.find(timestamp_);
    const bool later = before && !time.empty() && *before != time;
    if (later || row.find(place)) {
      several_ = true;
      table_.add(row);
      row.clear();
    }
    if (row.empty()) facts([&](std::string_view name, std::string_view fact) { row.put(table_.column(name), fact); });
    if (!time.empty() && !row.find(timestamp_)) row.put(timestamp_, time);
    row.put(place, value);
  }
  [[nodiscard]] LogTable table() {
    for (const auto& [host, rows] : rows_)
      for (const auto& [gpu, row] : rows)
        if (!row.empty()) table_.add(row);
    return std::move(table_);
  }
  [[nodiscard]] bool several() const { return several_; }

 private:
  LogTable table_;
  const std::size_t timestamp_ = table_.column("timestamp");
  using Rows = std::map<std::string, LogTable::Line, std::less<>>;  // by GPU
  std::map<std::string, Rows, std::less<>> rows_;                   // by host
  bool several_ = false;
};

std::string_view label(const Sample& sample, std::string_view name) {
  const auto found = sample.labels.find(name);
  return found == sample.labels.end() ? std::string_view() : std::string_view(found->second);
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
    const auto sample = line.starts_with('#') ? std::nullopt : sample_in(line);
    const std::string column = sample ? column_of_series(std::string(sample->name)) : "";
    if (column.empty()) continue;
    const std::string_view at = sample->time.empty() ? std::string_view(time) : sample->time;
    timed = timed || !at.empty();
    const auto facts = [&](const auto& put) {
      for (const auto& [name, of] :
           {std::pair{"index", "gpu"}, std::pair{"index", "index"}, std::pair{"uuid", "UUID"},
            std::pair{"uuid", "uuid"}, std::pair{"name", "modelName"}, std::pair{"hostname", "Hostname"}})
        if (const auto value = label(*sample, of); !value.empty()) put(name, value);
    };
    const std::string gpu = fmt::format("{}{} {}{}", label(*sample, "gpu"), label(*sample, "index"),
                                        label(*sample, "UUID"), label(*sample, "uuid"));
    rows.add(label(*sample, "Hostname"), gpu, at, column, sample->value, facts);
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

namespace {

struct LongColumns {
  std::optional<std::size_t> time, host, gpu, metric, value, labels;
  [[nodiscard]] bool complete() const { return time && metric && value; }
};

// What "index=0,host=a", '{"gpu": "0"}' and their like have behind one of these keys; "" where none is there.
std::string_view behind_key(std::string_view labels, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    for (auto at = labels.find(key); at != std::string_view::npos; at = labels.find(key, at + 1)) {
      const bool begins = at == 0 || std::string_view("{\"' ,;").find(labels[at - 1]) != std::string_view::npos;
      std::string_view rest = labels.substr(at + key.size());
      const auto value = rest.find_first_not_of("\"' ");
      if (!begins || value == std::string_view::npos || (rest[value] != '=' && rest[value] != ':')) continue;
      rest.remove_prefix(std::min(rest.find_first_not_of("\"' =:", value), rest.size()));
      return rest.substr(0, rest.find_first_of("\"' ,;}"));
    }
  return {};
}

std::string_view gpu_of_labels(std::string_view labels) {
  return behind_key(labels, {"index", "gpu", "gpu_id", "gpu_index", "minor_number", "device"});
}
std::string_view host_of_labels(std::string_view labels) {
  return behind_key(labels, {"Hostname", "hostname", "host", "node", "instance"});
}

// A column that names GPUs, beside others that say so better.
bool is_called_device(const std::string& name) {
  constexpr std::array<std::string_view, 5> kNames{"device", "card", "minor", "dev", "slot"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

struct LongMetric {
  std::string column, gpu;
};
LongMetric metric_of_long(std::string_view metric);

// Which column of a table with a row per metric is which, by their names; the metric and its value, where nobody knows
// their names, by a row.
LongColumns long_columns(const std::vector<std::string_view>& names, const std::vector<std::string_view>& row = {}) {
  constexpr std::array<std::string_view, 11> kMetric{"metric",     "metric_name", "metricname", "field",
                                                     "field_name", "name__",      "key",        "series",
                                                     "sensor",     "variable",    "tag"};
  constexpr std::array<std::string_view, 5> kLabels{"dimension", "dimensions", "labels", "label", "tags"};
  constexpr std::array<std::string_view, 4> kValue{"value", "metric_value", "metricvalue", "values"};
  const auto is_one_of = [](const auto& known, const std::string& name) {
    return std::find(known.begin(), known.end(), name) != known.end();
  };
  LongColumns found;
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string name = lower(trim(names[i]));
    name.erase(0, std::min(name.find_first_not_of('_'), name.size()));  // "_field", as InfluxDB has it
    const auto take = [&](std::optional<std::size_t>& place) { place = place.value_or(i); };
    if (is_one_of(kMetric, name))
      take(found.metric);
    else if (is_one_of(kValue, name))
      take(found.value);
    else if (is_one_of(kLabels, name))
      take(found.labels);
    else if (const auto rule = csv_column(names[i]); rule && rule->role == ColumnRole::kTimestamp) {
      const bool epoch =
          found.time && lower(trim(names[*found.time])) == "epoch";  // of a training, where a time is there
      if (epoch) found.time = i;
      take(found.time);
    } else if (rule && rule->role == ColumnRole::kHost)
      take(found.host);
    else if (rule && (rule->role == ColumnRole::kIndex || rule->role == ColumnRole::kUuid))
      if (!found.gpu || rule->role == ColumnRole::kIndex) found.gpu = i;
  }
  for (std::size_t i = 0; i < names.size() && !found.gpu; ++i)
    if (is_called_device(lower(trim(names[i])))) found.gpu = i;
  if (row.size() != names.size()) return found;
  const auto only = [&](const auto& fits) {
    std::optional<std::size_t> one;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool taken = i == found.time || i == found.host || i == found.gpu || i == found.metric || i == found.labels;
      if (taken || !fits(trim(row[i]))) continue;
      if (one) return std::optional<std::size_t>();
      one = i;
    }
    return one;
  };
  if (!found.metric) found.metric = only([](std::string_view cell) { return !metric_of_long(cell).column.empty(); });
  if (found.metric && !found.value)
    found.value = only([](std::string_view cell) { return parse_number<double>(cell).has_value(); });
  return found;
}

// Of a table with this header, which is a part of its text: by a row where the names do not tell.
LongColumns long_columns(std::string_view header, std::string_view text) {
  constexpr std::size_t kLooked = 4096;
  if (header.empty()) return {};  // and no part of it
  const char separator = separator_of(header);
  std::vector<std::string_view> names, row;
  split_cells(header, separator, names);
  LongColumns found = long_columns(names);
  LineCursor lines(text.substr(static_cast<std::size_t>(header.end() - text.begin()), kLooked));
  while (found.time && !found.complete() && lines.next()) {
    split_cells(lines.line(), separator, row);
    found = long_columns(names, row);
  }
  return found;
}

bool is_uuid(std::string_view gpu) { return gpu.starts_with("GPU-") || gpu.starts_with("MIG-"); }

// What a metric is: the column for "DCGM_FI_DEV_GPU_UTIL" and "gpu_utilization" alike, and its GPU, where it names one:
// "system/gpu_0_utilization_percentage".
LongMetric metric_of_long(std::string_view metric) {
  if (const auto column = dcgm_column(metric); !column.empty()) return {std::string(column), ""};
  if (const auto series = series_by_labels(metric)) return {metric_of_long(series->name).column, series->of};
  const auto rule = csv_column(metric);
  const bool fact = rule && rule->role == ColumnRole::kFact &&
                    (rule->fact == DeviceFact::kMemoryTotal || rule->fact == DeviceFact::kSmClockMax);
  const bool kept = fact || (rule && (rule->role == ColumnRole::kMetric || rule->role == ColumnRole::kReasonBit ||
                                      rule->role == ColumnRole::kFree));
  if (!kept) return {};
  if (!rule->gpu) return {std::string(metric), ""};
  const auto named = column_by_words(metric);
  if (!named) return {};
  return {named->unit.empty() ? std::string(named->name) : fmt::format("{} [{}]", named->name, named->unit),
          fmt::format("{}", *rule->gpu)};
}

// One reading of a table with a row per metric.
struct LongReading {
  std::string_view host, gpu, time, column, value;
};

// Series may stand one after the other, each with the same times: where none of them goes back in time, the readings in
// order of time, else as they are. What was read within a tenth of the shortest time between readings of one series is
// of one round, and has the time of its first.
void sort_by_time(std::vector<LongReading>& readings) {
  constexpr Nanos kOfRound = 10;
  std::vector<Nanos> at;
  std::map<std::array<std::string_view, 3>, Nanos> last;  // of a series
  Nanos spacing = std::numeric_limits<Nanos>::max();
  TimeReader reader({});
  for (const LongReading& reading : readings) {
    const auto time = reader.read(reading.time);
    if (!time) return;
    const auto [known, is_new] = last.try_emplace({reading.host, reading.gpu, reading.column}, *time);
    if (*time < known->second) return;
    if (*time > known->second) spacing = std::min(spacing, *time - known->second);
    known->second = *time;
    at.push_back(*time);
  }
  std::vector<std::size_t> order(readings.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return at[a] < at[b]; });
  std::vector<LongReading> sorted;
  sorted.reserve(order.size());
  std::size_t first = 0;  // of the round
  for (const std::size_t i : order) {
    if (sorted.empty() || at[i] - at[first] > spacing / kOfRound) first = i;
    sorted.push_back(readings[i]);
    sorted.back().time = readings[first].time;
  }
  readings = std::move(sorted);
}

// Columns of a table with a row per metric that nothing was made of; those of InfluxDB's own are none of the log's.
void name_unused_columns(const std::vector<std::string_view>& names, const LongColumns& columns,
                         std::vector<std::string>& left_out) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool used = i == columns.time || i == columns.host || i == columns.gpu || i == columns.metric ||
                      i == columns.value || i == columns.labels;
    const std::string name = lower(trim(names[i]));
    const bool of_influx = name.starts_with('_') || name == "result" || name == "table";
    if (!used && !of_influx && !name.empty()) left_out.push_back(header_as_utf8(names[i]));
  }
}

}  // namespace

bool is_long_header(const std::vector<std::string_view>& names) { return long_columns(names).complete(); }

bool is_long_table(std::string_view text) { return long_columns(without_annotations(text), text).complete(); }

bool are_smi_stats(std::string_view text) {
  constexpr std::size_t kCells = 4, kFewest = 3, kLooked = 40, kDigitsOfTime = 16;
  std::size_t known = 0;
  LineCursor lines(text);
  std::vector<std::string_view> cells;
  while (known < kFewest && lines.next() && lines.number() <= kLooked) {
    if (trim(lines.line()).empty()) continue;
    split_cells(lines.line(), ',', cells);
    const bool row = cells.size() == kCells && parse_number<int>(cells[0]) && cells[2].size() == kDigitsOfTime &&
                     parse_number<std::int64_t>(cells[2]) && !cells[1].empty() && !is_digit(cells[1][0]);
    if (!row) return false;
    ++known;
  }
  return known == kFewest;
}

namespace {

LogTable rows_of(std::vector<LongReading>& readings) {
  RowsByMetric rows;
  sort_by_time(readings);
  for (const LongReading& reading : readings)
    rows.add(reading.host, reading.gpu, reading.time, reading.column, reading.value, [&](const auto& put) {
      if (!reading.host.empty()) put("hostname", reading.host);
      if (!reading.gpu.empty()) put(is_uuid(reading.gpu) ? "uuid" : "index", reading.gpu);
    });
  return rows.table();
}

}  // namespace

Result<LogTable> table_of_long(std::string_view text) {
  if (are_smi_stats(text)) {
    std::string headed = "gpu,metric,timestamp,value\n";
    headed += text;
    return table_of_long(headed);
  }
  LineCursor lines(text);
  const std::string_view header = without_annotations(text);
  while (lines.next() && trim(lines.line()) != header) continue;
  const char separator = separator_of(header);
  std::vector<std::string_view> cells;
  split_cells(header, separator, cells);
  LongColumns columns = long_columns(header, text);
  const std::vector<std::string_view> names = cells;
  std::size_t count = names.size();
  if (!columns.complete())
    return fail(Errc::kInvalidInput, "no columns of a time, a metric and its value in the header",
                "write them as timestamp,gpu,metric,value");
  std::map<std::string, LongMetric, std::less<>> known;
  std::vector<LongReading> readings;
  constexpr std::size_t kMostLeftOut = 100;
  std::set<std::string> left_out;  // metrics
  bool annotated = false;          // a table of its own begins, behind the next header
  while (lines.next()) {
    split_cells(lines.line(), separator, cells);
    if (is_annotation(lines.line())) annotated = true;
    if (annotated) {
      const LongColumns next = long_columns(cells);
      if (!next.complete()) continue;
      columns = next, count = cells.size(), annotated = false;
      continue;
    }
    if (cells.size() != count) continue;
    const std::string_view name = cells[*columns.metric];
    auto metric = known.find(name);
    if (metric == known.end()) metric = known.emplace(name, metric_of_long(name)).first;
    const auto& [column, gpu] = metric->second;
    if (column.empty()) {
      if (left_out.size() < kMostLeftOut && !name.empty()) left_out.insert(header_as_utf8(name));
      continue;
    }
    const auto cell = [&](const std::optional<std::size_t>& at) { return at ? cells[*at] : std::string_view(); };
    const std::string_view of_row = columns.gpu ? cell(columns.gpu) : gpu_of_labels(cell(columns.labels));
    const std::string_view host = columns.host ? cell(columns.host) : host_of_labels(cell(columns.labels));
    readings.push_back(
        {host, gpu.empty() ? of_row : std::string_view(gpu), cells[*columns.time], column, cells[*columns.value]});
  }
  LogTable table = rows_of(readings);
  table.left_out.assign(left_out.begin(), left_out.end());
  name_unused_columns(names, columns, table.left_out);
  if (table.empty())
    return fail(Errc::kInvalidInput, "no row with a metric of a GPU that is known",
                "its metrics may be called DCGM_FI_DEV_GPU_UTIL or utilization.gpu and their like");
  return table;
}

}  // namespace headroom
