// SPDX-License-Identifier: Apache-2.0
// Tables with a row per metric.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "base/strings.h"
#include "import/column_words.h"
#include "import/log_reader.h"
#include "import/rows_by_metric.h"
#include "import/table.h"

namespace headroom {

namespace {

struct LongColumns {
  std::optional<std::size_t> time, host, gpu, metric, value, labels;
  [[nodiscard]] bool complete() const { return time && metric && value; }
  [[nodiscard]] bool taken(std::size_t i) const {  // by anything but values
    return i == time || i == host || i == gpu || i == metric || i == labels;
  }
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
  std::string path;  // of Graphite, before them: "servers.node7"
};
LongMetric metric_of_long(std::string_view metric);

// Columns by their names, without underscores in front of those: "_field", as InfluxDB has it.
struct LongName {
  std::string_view name;
  std::optional<std::size_t> LongColumns::*place;
};
constexpr std::array kLongNames{
    LongName{"metric", &LongColumns::metric},     LongName{"metric_name", &LongColumns::metric},
    LongName{"metricname", &LongColumns::metric}, LongName{"field", &LongColumns::metric},
    LongName{"field_name", &LongColumns::metric}, LongName{"name__", &LongColumns::metric},
    LongName{"key", &LongColumns::metric},        LongName{"series", &LongColumns::metric},
    LongName{"sensor", &LongColumns::metric},     LongName{"variable", &LongColumns::metric},
    LongName{"tag", &LongColumns::metric},        LongName{"dimension", &LongColumns::labels},
    LongName{"dimensions", &LongColumns::labels}, LongName{"labels", &LongColumns::labels},
    LongName{"label", &LongColumns::labels},      LongName{"tags", &LongColumns::labels},
    LongName{"value", &LongColumns::value},       LongName{"metric_value", &LongColumns::value},
    LongName{"metricvalue", &LongColumns::value}, LongName{"values", &LongColumns::value},
};

void take_long_column(const std::vector<std::string_view>& names, std::size_t i, LongColumns& found) {
  const auto take_first = [&](std::optional<std::size_t>& place) { place = place.value_or(i); };
  std::string name = lower(trim(names[i]));
  name.erase(0, std::min(name.find_first_not_of('_'), name.size()));
  const auto* const known =
      std::find_if(kLongNames.begin(), kLongNames.end(), [&](const LongName& one) { return one.name == name; });
  if (known != kLongNames.end()) return take_first(found.*known->place);
  const auto rule = csv_column(names[i]);
  if (!rule) return;
  const bool epoch = found.time && lower(trim(names[*found.time])) == "epoch";  // of a training, where a time is there
  if (rule->role == ColumnRole::kTimestamp && (epoch || !found.time)) found.time = i;
  if (rule->role == ColumnRole::kHost) take_first(found.host);
  if (rule->role == ColumnRole::kIndex || (rule->role == ColumnRole::kUuid && !found.gpu)) found.gpu = i;
}

// The one column that is not taken and whose cell fits; nothing where several do.
template <class Fits>
std::optional<std::size_t> only_column(const std::vector<std::string_view>& row, const LongColumns& found,
                                       const Fits& fits) {
  std::optional<std::size_t> one;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (found.taken(i) || !fits(trim(row[i]))) continue;
    if (one) return std::nullopt;
    one = i;
  }
  return one;
}

// Which column of a table with a row per metric is which, by their names; the metric and its value, where nobody knows
// their names, by a row.
LongColumns long_columns(const std::vector<std::string_view>& names, const std::vector<std::string_view>& row = {}) {
  LongColumns found;
  for (std::size_t i = 0; i < names.size(); ++i) take_long_column(names, i, found);
  for (std::size_t i = 0; i < names.size() && !found.gpu; ++i)
    if (is_called_device(lower(trim(names[i])))) found.gpu = i;
  if (row.size() != names.size()) return found;
  const auto is_metric = [](std::string_view cell) { return !metric_of_long(cell).column.empty(); };
  const auto is_number = [](std::string_view cell) { return parse_number<double>(cell).has_value(); };
  const auto is_gpu = [](std::string_view cell) {  // "gpu0"
    return cell.size() > 3 && lower(cell.substr(0, 3)) == "gpu" && parse_number<unsigned>(cell.substr(3));
  };
  if (!found.metric && found.labels && is_metric(row[*found.labels]))  // "Dimension" of SageMaker's profiler
    found.metric = std::exchange(found.labels, std::nullopt);
  if (!found.metric) found.metric = only_column(row, found, is_metric);
  if (!found.gpu && found.metric) found.gpu = only_column(row, found, is_gpu);
  if (found.metric && !found.value) found.value = only_column(row, found, is_number);
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

LongMetric metric_by_words(std::string_view metric);

// "servers.node7.nvidia.gpu0.utilization", as Graphite has it: by the last parts, which must name a GPU.
LongMetric metric_of_path(std::string_view path) {
  constexpr int kMostParts = 3;
  LongMetric found;
  std::size_t begin = path.rfind('.');
  for (int parts = 1; parts <= kMostParts && begin != std::string_view::npos && begin > 0; ++parts) {
    const std::string_view end = path.substr(begin + 1);
    const std::string small = lower(end);
    const bool gpu = small.find("gpu") != std::string::npos || small.starts_with("nvidia");
    if (auto metric = gpu ? metric_by_words(end) : LongMetric(); !metric.column.empty()) {
      found = std::move(metric);
      found.path = path.substr(0, begin);
    }
    begin = path.rfind('.', begin - 1);
  }
  return found;
}

// What a metric is: the column for "DCGM_FI_DEV_GPU_UTIL" and "gpu_utilization" alike, and its GPU, where it names one:
// "system/gpu_0_utilization_percentage".
LongMetric metric_of_long(std::string_view metric) {
  if (const auto column = dcgm_column(metric); !column.empty()) return {std::string(column), "", ""};
  if (const auto series = series_by_labels(metric)) return {metric_of_long(series->name).column, series->of, ""};
  if (auto named = metric_by_words(metric); !named.column.empty()) return named;
  return metric_of_path(metric);
}

LongMetric metric_by_words(std::string_view metric) {
  const auto rule = csv_column(metric);
  const bool fact = rule && rule->role == ColumnRole::kFact &&
                    (rule->fact == DeviceFact::kMemoryTotal || rule->fact == DeviceFact::kSmClockMax);
  const bool kept = fact || (rule && (rule->role == ColumnRole::kMetric || rule->role == ColumnRole::kReasonBit ||
                                      rule->role == ColumnRole::kFree));
  if (!kept) return {};
  if (!rule->gpu) return {std::string(metric), "", ""};
  const auto named = column_by_words(metric);
  if (!named) return {};
  return {named->unit.empty() ? std::string(named->name) : fmt::format("{} [{}]", named->name, named->unit),
          fmt::format("{}", *rule->gpu), ""};
}

// Series may stand one after the other, each with the same times: where none of them goes back in time, the readings in
// order of time, else as they are. What was read within a tenth of the shortest time between readings of one series is
// of one round, and has the time of its first.
void sort_by_time(std::vector<MetricReading>& readings) {
  constexpr Nanos kOfRound = 10;
  std::vector<Nanos> at;
  std::map<std::array<std::string_view, 3>, Nanos> last;  // of a series
  Nanos spacing = std::numeric_limits<Nanos>::max();
  TimeReader reader({});
  for (const MetricReading& reading : readings) {
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
  std::vector<MetricReading> sorted;
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
    const bool used = columns.taken(i) || i == columns.value;
    const std::string name = lower(trim(names[i]));
    const bool of_influx = name.starts_with('_') || name == "result" || name == "table";
    if (!used && !of_influx && !name.empty()) left_out.push_back(header_as_utf8(names[i]));
  }
}

}  // namespace

bool is_long_header(const std::vector<std::string_view>& names, const std::vector<std::string_view>& row) {
  const LongColumns told = long_columns(names);
  return told.complete() || (told.time && told.value && long_columns(names, row).complete());
}

bool is_long_table(std::string_view text) { return long_columns(without_annotations(text), text).complete(); }

namespace {

// The cells of a line of Graphite: "PATH VALUE TIME", or of its CSV, "PATH,TIME,VALUE"; else of none.
std::vector<std::string_view> graphite_cells(std::string_view line) {
  constexpr std::size_t kDigitsOfTime = 10;
  std::vector<std::string_view> cells = csv_cells(line);
  const bool csv = cells.size() == 3;
  if (!csv) cells = words_of(line);
  if (cells.size() != 3 || cells[0].find('.') == std::string_view::npos) return {};
  if (csv) std::swap(cells[1], cells[2]);
  const bool unix_time = cells[2].size() == kDigitsOfTime && parse_number<std::int64_t>(cells[2]);
  const bool time = unix_time || (csv && TimeReader({}).read(cells[2]));
  return time && (csv || parse_number<double>(cells[1])) ? cells : std::vector<std::string_view>();
}

}  // namespace

bool are_graphite_lines(std::string_view text) {
  constexpr std::size_t kFewest = 3, kLooked = 60;
  std::size_t known = 0;
  LineCursor lines(text);
  while (lines.next() && lines.complete() && lines.number() <= kLooked) {
    if (trim(lines.line()).empty()) continue;
    const auto cells = graphite_cells(lines.line());
    if (cells.empty()) return false;
    if (!metric_of_long(cells[0]).column.empty()) ++known;
  }
  return known >= kFewest;
}

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

// Readings row by row; they are of the text, and last as long as this does.
class LongRows {
 public:
  LongRows(const LongColumns& columns, std::size_t count) : columns_(columns), count_(count) {}
  // A table of its own begins, behind the next header.
  void annotation() { annotated_ = true; }
  void add(const std::vector<std::string_view>& cells) {
    if (annotated_) return begin_table(cells);
    if (cells.size() != count_) return;
    const auto cell = [&](const std::optional<std::size_t>& at) { return at ? cells[*at] : std::string_view(); };
    const LongMetric& metric = metric_called(cells[*columns_.metric]);
    if (metric.column.empty()) return;
    const std::string_view labels = cell(columns_.labels);
    const std::string_view of_row = columns_.gpu ? cell(columns_.gpu) : gpu_of_labels(labels);
    std::string_view host = columns_.host ? cell(columns_.host) : host_of_labels(labels);
    if (host.empty()) host = metric.path, paths_.insert(metric.path);
    readings_.push_back({host, metric.gpu.empty() ? of_row : std::string_view(metric.gpu), cells[*columns_.time],
                         metric.column, cells[*columns_.value]});
  }
  // `names`: of the first header.
  [[nodiscard]] LogTable table(const std::vector<std::string_view>& names) {
    RowsByMetric rows;
    if (paths_.size() == 1)  // it tells no GPUs apart
      for (MetricReading& reading : readings_)
        if (reading.host == *paths_.begin()) reading.host = {};
    sort_by_time(readings_);
    for (const MetricReading& reading : readings_)
      rows.add(reading, [&](const auto& put) {
        if (!reading.host.empty()) put("hostname", reading.host);
        if (!reading.gpu.empty()) put(is_uuid(reading.gpu) ? "uuid" : "index", reading.gpu);
      });
    LogTable table = rows.table();
    table.left_out.assign(left_out_.begin(), left_out_.end());
    name_unused_columns(names, columns_, table.left_out);
    return table;
  }

 private:
  void begin_table(const std::vector<std::string_view>& header) {
    const LongColumns next = long_columns(header);
    if (next.complete()) columns_ = next, count_ = header.size(), annotated_ = false;
  }
  const LongMetric& metric_called(std::string_view name) {
    constexpr std::size_t kMostLeftOut = 100;
    auto metric = known_.find(name);
    if (metric == known_.end()) metric = known_.emplace(name, metric_of_long(name)).first;
    if (metric->second.column.empty() && left_out_.size() < kMostLeftOut && !name.empty())
      left_out_.insert(header_as_utf8(name));
    return metric->second;
  }

  LongColumns columns_;
  std::size_t count_;
  bool annotated_ = false;
  std::map<std::string, LongMetric, std::less<>> known_;
  std::vector<MetricReading> readings_;
  std::set<std::string> left_out_;  // metrics
  std::set<std::string> paths_;     // of Graphite
};

}  // namespace

Result<LogTable> table_of_long(std::string_view text) {
  if (are_smi_stats(text)) {
    std::string headed = "gpu,metric,timestamp,value\n";
    headed += text;
    return table_of_long(headed);
  }
  if (are_graphite_lines(text)) {
    std::string headed = "metric,value,timestamp\n";
    LineCursor points(text);
    while (points.next())
      if (const auto cells = graphite_cells(points.line()); !cells.empty())
        headed += fmt::format("{}\n", fmt::join(cells, ","));
    return table_of_long(headed);
  }
  LineCursor lines(text);
  const std::string_view header = without_annotations(text);
  while (lines.next() && trim(lines.line()) != header) continue;
  const char separator = separator_of(header);
  std::vector<std::string_view> cells;
  split_cells(header, separator, cells);
  const LongColumns columns = long_columns(header, text);
  const std::vector<std::string_view> names = cells;
  if (!columns.complete())
    return fail(Errc::kInvalidInput, "no columns of a time, a metric and its value in the header",
                "write them as timestamp,gpu,metric,value");
  LongRows rows(columns, names.size());
  while (lines.next()) {
    split_cells(lines.line(), separator, cells);
    if (is_annotation(lines.line())) rows.annotation();
    rows.add(cells);
  }
  LogTable table = rows.table(names);
  if (table.empty())
    return fail(Errc::kInvalidInput, "no row with a metric of a GPU that is known",
                "its metrics may be called DCGM_FI_DEV_GPU_UTIL or utilization.gpu and their like");
  return table;
}

}  // namespace headroom
