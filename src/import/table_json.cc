// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/strings.h"
#include "import/json_members.h"
#include "import/json_series.h"
#include "import/log_reader.h"
#include "import/table.h"

namespace headroom {

namespace {

using Json = nlohmann::json;

}  // namespace

std::vector<std::string_view> objects_of(std::string_view text) {
  std::vector<std::string_view> objects;
  std::size_t depth = 0, begin = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && c == '{') {
      if (depth++ == 0) begin = i;
    } else if (!in_string && c == '}' && depth > 0 && --depth == 0) {
      objects.push_back(text.substr(begin, i + 1 - begin));
    }
  }
  return objects;
}

namespace {

// What Python prints of a dictionary, "{'util': 87, 'name': None}", as JSON; nothing where that would be a guess.
Json of_python(std::string_view object) {
  if (object.find('\'') == std::string_view::npos || object.find('"') != std::string_view::npos) return {};
  std::string text(object);
  std::replace(text.begin(), text.end(), '\'', '"');
  for (const auto& [word, json] : {std::pair{": None", ": null"}, {": True", ": true"}, {": False", ": false"}})
    for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
      text.replace(at, std::string_view(word).size(), json);
  return parse_json<Json>(text);
}

// The beginning of a long value of JSON as a whole one: up to the last comma, and all that is open there closed.
std::string closed_json(std::string_view text) {
  std::string open, open_at_comma;
  std::size_t comma = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\')
      ++i;
    else if (c == '"')
      in_string = !in_string;
    else if (in_string)
      continue;
    else if (c == '{' || c == '[')
      open += c == '{' ? '}' : ']';
    else if ((c == '}' || c == ']') && !open.empty())
      open.pop_back();
    else if (c == ',')
      comma = i, open_at_comma = open;
  }
  return std::string(text.substr(0, comma)) + std::string(open_at_comma.rbegin(), open_at_comma.rend());
}

bool has_cell(const LogTable::Row& row, ColumnRole role) {
  return std::any_of(row.begin(), row.end(), [&](const auto& cell) { return has_role(cell.first, role); });
}

bool has_metric(const LogTable::Row& row) { return has_cell(row, ColumnRole::kMetric); }

// A table by its columns, as pandas ("{"gpu_util": {"0": 88, "1": 90}}") and lists in a dictionary of Python have it:
// its rows. Empty where the members of `object` are not all of one length.
std::vector<LogTable::Row> rows_of_columns(const Json& object) {
  std::vector<LogTable::Row> rows;
  for (const auto& [name, cells] : object.items()) {
    const bool first = rows.empty();
    if (!cells.is_structured() || cells.empty() || (!first && cells.size() != rows.size())) return {};
    rows.resize(cells.size());
    const bool plural = name.size() > 1 && name.back() == 's' && !csv_column(name);
    std::vector<std::pair<std::int64_t, const Json*>> ordered;  // "10" comes behind "9"
    for (const auto& [key, cell] : cells.items())
      ordered.emplace_back(parse_number<std::int64_t>(key).value_or(0), &cell);
    std::stable_sort(ordered.begin(), ordered.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
    for (std::size_t i = 0; i < ordered.size(); ++i) {
      const Json& cell = *ordered[i].second;
      if (cell.is_structured()) return {};
      rows[i][plural ? name.substr(0, name.size() - 1) : name] = cell.is_null() ? "" : json_cell(cell);
    }
  }
  return rows;
}

// The objects of the lists in `object`.
std::vector<const Json*> listed_in(const Json& object) {
  std::vector<const Json*> listed;
  for (const Json& value : object)
    if (value.is_array())
      for (const Json& item : value)
        if (item.is_object()) listed.push_back(&item);
  return listed;
}

// intel_gpu_top -J: how long each period was, and how busy each engine, of which the busiest counts.
std::optional<LogTable::Row> row_of_intel(const Json& object, double& elapsed_ms) {
  const auto period = object.find("period"), engines = object.find("engines");
  if (period == object.end() || engines == object.end() || !period->is_object() || !engines->is_object())
    return std::nullopt;
  const auto number = [](const Json& in, const char* name) { return parse_number<double>(json_member(in, name)); };
  const auto length = number(*period, "duration");
  std::optional<double> busiest;
  for (const Json& engine : *engines)
    if (const auto busy = engine.is_object() ? number(engine, "busy") : std::nullopt)
      busiest = std::max(busiest.value_or(0), *busy);
  if (!length || !busiest || json_member(*period, "unit") != "ms") return std::nullopt;
  elapsed_ms += *length;
  constexpr double kAll = 100;
  LogTable::Row row{{"elapsed_ms", fmt::format("{:.3f}", elapsed_ms)},
                    {"DeviceId", "0"},
                    {"utilization.gpu", fmt::format("{:.2f}", std::min(kAll, *busiest))}};
  if (const auto power = object.find("power"); power != object.end() && power->is_object())
    if (std::string watts = json_member(*power, "GPU"); !watts.empty()) row["power.draw"] = std::move(watts);
  if (const auto clock = object.find("frequency"); clock != object.end() && clock->is_object())
    if (std::string actual = json_member(*clock, "actual"); !actual.empty()) row["clocks.sm"] = std::move(actual);
  return row;
}

// The time in what stands in front of an object in its line: "2025-06-03 14:02:11,532 INFO ", or of dynolog
// "I20250603 14:02:11.532 812 Logger.cpp:54] time = 2025-06-03T14:02:11.532Z data = ".
std::optional<std::string> time_before_object(std::string_view front) {
  constexpr std::string_view kNamed = "time = ";
  if (const auto named = front.find(kNamed); named != std::string_view::npos) {
    const std::string_view rest = front.substr(named + kNamed.size());
    return time_of_line(rest.substr(0, rest.find(' ')));
  }
  auto time = time_in_front(front);
  return time ? std::optional(std::move(time->first)) : std::nullopt;
}

// A line of a program's log without an object: "I20250603 14:02:11.532 812 Logger.cpp:54] Logging : 10 values".
bool is_log_line(std::string_view line) {
  constexpr std::size_t kDate = 9;
  const bool of_glog = line.size() > kDate && std::string_view("IWEF").find(line[0]) != std::string_view::npos &&
                       line[kDate] == ' ' && parse_number<int>(line.substr(1, kDate - 1));
  return of_glog || time_in_front(line);
}

// A UUID, the address of a slot, or a number.
enum class KeyOfGpu { kNone, kUuid, kPci, kNumber };
KeyOfGpu key_of_gpu(std::string_view key) {
  constexpr std::size_t kDigits = 3, kPciDigits = 7;  // "01:00.0"
  if (key.starts_with("GPU-") || key.starts_with("MIG-")) return KeyOfGpu::kUuid;
  if (key.size() <= kDigits && parse_number<unsigned>(key)) return KeyOfGpu::kNumber;
  const bool pci = key.size() >= kPciDigits && key[key.size() - 2] == '.' && key[key.size() - 5] == ':' &&
                   key.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
  return pci ? KeyOfGpu::kPci : KeyOfGpu::kNone;
}

// The rows of objects that stand alone or in lists, and the lines between them that say when.
class ObjectRows {
 public:
  void add(std::string_view before, const Json& object) {
    read_between(before);
    if (is_of_telegraf(object) && !measures_gpus(json_member(object, "name"))) return;
    if (auto intel = row_of_intel(object, elapsed_ms_)) {
      put(std::move(*intel));
      return;
    }
    if (add_series(object, "")) return;
    if (auto columns = rows_of_columns(object); !columns.empty() && has_metric(columns.front())) {
      for (LogTable::Row& row : columns) put(std::move(row));
      return;
    }
    if (add_by_time(object) || add_by_gpu(object, {}, AnyKey::kNo)) return;
    LogTable::Row row;
    put_json_members(object, "", row);
    if (add_gpus_of_list(object, row)) return;
    if (!has_metric(row) && add_by_gpu(object, {}, AnyKey::kYes)) return;
    for (const Json* item : has_metric(row) ? std::vector<const Json*>() : listed_in(object)) {
      LogTable::Row of_item = row;
      put_json_members(*item, "", of_item);
      put(std::move(of_item));
    }
    put(std::move(row));
  }
  // The rows; of a table with a row per metric if they are such.
  [[nodiscard]] LogTable table() {
    constexpr int kFewest = 3;  // one object may be anything that has to do with a GPU
    if (!table_.empty()) return std::move(table_);
    if (long_.empty()) return untimed_rows_ < kFewest ? LogTable{} : std::move(untimed_);
    auto table = table_of_long(long_.csv());
    return table ? std::move(*table) : LogTable{};
  }

 private:
  // Lines that say when, and where a list begins.
  void read_between(std::string_view text) {
    LineCursor lines(text);
    while (lines.next()) {
      auto stamp = time_of_line(lines.line());
      if (!stamp && !lines.complete()) stamp = time_before_object(lines.line());
      if (stamp) time_ = std::move(*stamp), place_ = 0;
      if (trim(lines.line()).starts_with('[')) place_ = 0, in_lists_ = true;
    }
  }
  // {"time": …, "memory_used": …, "gpu": [{"id": 0, "util": 88}, …]}: beside uses in a list other readings are the
  // host's.
  bool add_gpus_of_list(const Json& object, const LogTable::Row& around) {
    LogTable::Row beside = around;
    std::erase_if(beside, [](const auto& cell) { return has_role(cell.first, ColumnRole::kMetric); });
    bool found = false;
    for (const Json* item : listed_in(object)) {
      LogTable::Row row;
      put_json_members(*item, "", row);
      const bool used = std::any_of(row.begin(), row.end(), [](const auto& cell) {
        const auto rule = csv_column(cell.first);
        return rule && rule->role == ColumnRole::kMetric && rule->metric == Metric::kGpuUtil;
      });
      if (!used || row.contains("pid")) continue;
      row.insert(beside.begin(), beside.end());
      put(std::move(row));
      found = true;
    }
    return found;
  }
  // {"gpu_0_utilization": {"x": [1764400000000, …], "y": [88, …]}}, as of ClearML and of plots, and {"Label": …,
  // "Timestamps": […], "Values": […]} of CloudWatch, within other objects and lists: each value is a reading.
  bool add_series(const Json& value, const std::string& key, int depth = 0) {
    constexpr int kDeepest = 4;
    if (!value.is_structured() || depth > kDeepest) return false;
    bool found = value.is_object() && add_one_series(value, key);
    for (const auto& [name, member] : value.items())
      if (member.is_structured()) found = add_series(member, value.is_array() ? key : name, depth + 1) || found;
    return found;
  }
  bool add_one_series(const Json& series, const std::string& key) {
    std::string metric = key;
    for (const char* name : {"Label", "label", "name", "metric", "target"})
      if (const auto said = series.find(name); said != series.end() && said->is_string())
        metric = said->get<std::string>();
    if (auto rows = rows_of_split(series); !rows.empty()) {
      for (LogTable::Row& row : rows) put(std::move(row));
      return true;
    }
    const auto readings = readings_of_series(metric, series);
    for (const LogTable::Row& reading : readings) long_.add(reading);
    return !readings.empty() || add_points(metric, series);
  }
  // {"Label": …, "Datapoints": [{"Timestamp": …, "Average": …}, …]} of CloudWatch, in no order.
  bool add_points(const std::string& metric, const Json& series) {
    const auto points = series.find("Datapoints");
    if (points == series.end() || !points->is_array()) return false;
    std::vector<std::pair<Nanos, LogTable::Row>> rows;
    TimeReader reader({});
    for (const Json& point : *points) {
      if (!point.is_object()) continue;
      const std::string time = json_member(point, "Timestamp"), value = json_member(point, "Average");
      if (const auto at = reader.read(time); at && !value.empty())
        rows.emplace_back(*at, LogTable::Row{{"timestamp", time}, {"metric", metric}, {"value", value}});
    }
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [at, row] : rows) long_.add(row);
    return !rows.empty();
  }
  // {"2025-09-04 22:10:07": {"gpu0": {"util": 88}}, …}: each member is a row.
  bool add_by_time(const Json& object) {
    if (object.empty() || !object.begin()->is_object() || !time_of_line(object.begin().key())) return false;
    for (const auto& [time, members] : object.items()) {
      LogTable::Row row{{"timestamp", time}};
      if (members.is_object()) put_json_members(members, "", row);
      put(std::move(row));
    }
    return true;
  }
  // {"time": …, "GPU-1f2e…": {"util": 88}, …}, {"time": …, "nvml": {"0": {"util": 88}}}: each such member is a row,
  // with what stands beside it. Numbers may be of anything: they are taken where nothing else is read.
  enum class AnyKey { kNo, kYes };
  bool add_by_gpu(const Json& object, const LogTable::Row& around, AnyKey any, int depth = 0) {
    constexpr int kDeepest = 2;
    LogTable::Row beside = around;
    for (const auto& [name, value] : object.items())
      if (!value.is_structured()) beside[name] = value.is_null() ? "" : json_cell(value);
    bool found = false;
    for (const auto& [name, value] : object.items()) {
      const KeyOfGpu key = key_of_gpu(name);
      if (!value.is_object()) continue;
      if (key == KeyOfGpu::kNone || (key == KeyOfGpu::kNumber && any == AnyKey::kNo)) {
        found = (depth < kDeepest && add_by_gpu(value, beside, any, depth + 1)) || found;
        continue;
      }
      LogTable::Row row = row_of_gpu(name, value, beside);
      if (!has_metric(row)) continue;
      found = true;
      put(std::move(row));
    }
    return found;
  }
  static LogTable::Row row_of_gpu(const std::string& name, const Json& members, LogTable::Row row) {
    const KeyOfGpu key = key_of_gpu(name);
    const bool own_time = std::any_of(members.items().begin(), members.items().end(), [](const auto& member) {
      return has_role(member.key(), ColumnRole::kTimestamp);
    });
    if (key != KeyOfGpu::kNumber || !own_time)  // else it is the number of a row
      row[key == KeyOfGpu::kUuid ? "uuid" : key == KeyOfGpu::kPci ? "pci.bus_id" : "index"] = name;
    put_json_members(members, "", row);
    return row;
  }
  void put(LogTable::Row row) {
    if (put_metric(row)) return;
    const bool timed = has_cell(row, ColumnRole::kTimestamp);
    if (!timed && !time_.empty()) row["timestamp"] = time_;
    if (!has_metric(row)) return;
    if (const auto device = row.find("device"); device != row.end() && parse_number<unsigned>(device->second))
      row.emplace("index", device->second), row.erase(device);
    const bool named = has_cell(row, ColumnRole::kIndex) || has_cell(row, ColumnRole::kUuid);
    const bool dated = timed || !time_.empty();
    if (!timed && !named && (dated || in_lists_)) row["index"] = fmt::format("{}", place_);
    ++place_;
    if (!dated) ++untimed_rows_;
    (dated ? table_ : untimed_).add(row);
  }
  // {"key": "system/gpu_0_power_usage_watts", "value": 88, "timestamp": …} is no row but one reading of one.
  bool put_metric(const LogTable::Row& row) {
    std::vector<std::string_view> names, cells;
    for (const auto& [name, cell] : row) names.push_back(name), cells.push_back(cell);
    if (!is_long_header(names, cells)) return false;
    long_.add(row);
    return true;
  }
  LogTable table_, long_;  // with a row per metric
  LogTable untimed_;       // where nothing says when
  int untimed_rows_ = 0;
  bool in_lists_ = false;
  std::string time_;
  std::size_t place_ = 0;  // in its list
  double elapsed_ms_ = 0;  // of periods
};

ObjectRows rows_of_objects(std::string_view text, std::size_t most) {
  ObjectRows rows;
  const char* end = text.data();
  for (const std::string_view object : objects_of(text)) {
    if (most-- == 0) break;
    Json parsed = parse_json<Json>(object);
    if (!parsed.is_object()) parsed = of_python(object);
    if (parsed.is_object()) rows.add({end, static_cast<std::size_t>(object.data() - end)}, parsed);
    end = object.data() + object.size();
  }
  return rows;
}

}  // namespace

bool are_json_rows(std::string_view text) {
  constexpr std::size_t kMost = 8;  // of a list the first may be of another kind of GPU, without readings
  const auto open = text.find('{');
  if (open == std::string_view::npos) return false;
  LineCursor lines(text.substr(0, open));
  while (lines.next()) {
    const std::string_view line = trim(lines.line());
    const bool logged = lines.complete() ? is_log_line(line) : time_before_object(line).has_value();
    if (!line.empty() && line != "[" && !time_of_line(line) && !logged) return false;
  }
  const std::string closed = objects_of(text).empty() ? closed_json(text) : "";
  return !rows_of_objects(closed.empty() ? text : closed, kMost).table().empty();
}

Result<LogTable> table_of_json_rows(std::string_view text) {
  LogTable table = rows_of_objects(text, std::string_view::npos).table();
  if (table.empty())
    return fail(Errc::kInvalidInput, "no object with a time and a reading of a GPU in it",
                "write one a line: {\"timestamp\": …, \"index\": 0, \"gpu_util\": 88}");
  return table;
}

}  // namespace headroom
