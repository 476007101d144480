// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/strings.h"
#include "import/listed_processes.h"
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

std::string cell_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number() || value.is_null() ? value.dump() : "";
}

// The time within a line, such as "box  Mon Oct  9 15:20:11 2023  driver": five words that are one; "": none.
std::string time_within(std::string_view line) {
  std::vector<std::string_view> words = split(line, ' ');
  std::erase(words, "");
  constexpr std::size_t kWords = 5;
  for (std::size_t i = 0; i + kWords <= words.size(); ++i) {
    const auto first = words.begin() + static_cast<std::ptrdiff_t>(i);
    const std::string time = join(std::vector<std::string>(first, first + kWords), " ");
    if (time.find(':') != std::string::npos && TimeReader({}).read(time)) return time;
  }
  return "";
}

std::string member(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? "" : cell_of(*found);
}

// Whose processes were on a GPU, by gpustat's "alice:python/41201(38198M) bob(512M)": "alice python".
void take_users(std::string_view cell, const std::string& gpu, const std::string& time, ListedProcesses& processes) {
  std::vector<std::string> names;
  for (const std::string_view process : split(cell, ' ')) {
    const std::string_view who = process.substr(0, process.find_first_of("/("));  // also of "alice(512M)"
    if (who.size() == process.size()) continue;
    processes.user(gpu, who);
    names.emplace_back(process.substr(0, process.find('(')));
  }
  processes.answer(gpu, std::move(names), time);
}

// The same of {"username": "alice", "command": "python", "pid": 41201}.
void take_users(const Json& list, const std::string& gpu, const std::string& time, ListedProcesses& processes) {
  std::vector<std::string> names;
  for (const Json& process : list) {
    if (!process.is_object()) continue;
    const std::string user = member(process, "username"), command = member(process, "command");
    const std::string who = user + (user.empty() || command.empty() ? "" : " ") + command;
    processes.user(gpu, who);
    const std::string pid = member(process, "pid");
    names.push_back(pid + (pid.empty() || who.empty() ? "" : " ") + who);
  }
  processes.answer(gpu, std::move(names), time);
}

// "box  Mon Oct  9 15:20:11 2023  525.125.06", then a line for each GPU:
// "[0] NVIDIA GeForce RTX 3090 | 71°C,  99 % | 23010 / 24576 MB | alice(23001M)"
LogTable table_of_gpustat_text(std::string_view text) {
  LogTable table;
  std::string time;
  ListedProcesses processes;
  LineCursor lines(text);
  while (lines.next()) {
    const std::string_view line = trim(lines.line());
    const auto close = line.find(']');
    const auto cells = split(line, '|');
    if (!line.starts_with('[') || close == std::string_view::npos || cells.size() < 3) {
      if (auto stamp = time_within(line); !stamp.empty()) time = std::move(stamp);
      continue;
    }
    const auto percent = cells[1].rfind('%');  // a fan's stands before it
    const auto comma = cells[1].rfind(',', percent), slash = cells[2].find('/');
    if (comma == std::string_view::npos || slash == std::string_view::npos || percent == std::string_view::npos)
      continue;
    LogTable::Row row{
        {"index", std::string(trim(line.substr(1, close - 1)))},
        {"name", std::string(trim(cells[0].substr(close + 1)))},
        {"temperature.gpu", std::string(trim(cells[1].substr(0, cells[1].find_first_not_of(" 0123456789"))))},
        {"utilization.gpu", std::string(trim(cells[1].substr(comma + 1, percent - comma - 1)))},
        {"memory.used", std::string(trim(cells[2].substr(0, slash)))},
        {"memory.total", std::string(trim(cells[2].substr(slash + 1, cells[2].find_last_of("0123456789") - slash)))}};
    if (!time.empty()) row["timestamp"] = time;
    // gpustat -P: "65°C,  99 %,  338 / 400 W"
    const std::string_view power = cells[1].substr(percent + 1);
    if (const auto over = power.find('/');
        over != std::string_view::npos && power.find('W') != std::string_view::npos) {
      row["power.draw"] = trim(power.substr(0, over).substr(power.find_first_not_of(" ,")));
      row["power.limit"] = trim(power.substr(over + 1, power.find('W') - over - 1));
    }
    if (cells.size() > 3) take_users(cells[3], row["index"], time, processes);
    table.add(row);
  }
  processes.tell(table.extra);
  return table;
}

bool has_role(std::string_view name, ColumnRole role) {
  const auto rule = csv_column(name);
  return rule && rule->role == role;
}

// gpustat's query_time, or what a monitor of one's own calls the time.
std::string time_of_answer(const Json& answer) {
  if (std::string time = member(answer, "query_time"); !time.empty()) return time;
  for (const auto& [name, value] : answer.items())
    if (!value.is_structured() && has_role(name, ColumnRole::kTimestamp)) return cell_of(value);
  return "";
}

// {"fields": {…}, "name": "nvidia_smi", "tags": {…}, "timestamp": …}
bool is_of_telegraf(const Json& object) {
  const auto has = [&](const char* name) { return object.contains(name) && object[name].is_object(); };
  return has("fields") && has("tags") && object.contains("timestamp");
}

// The members of an object, and of objects in it, as cells: {"gpu": {"util": 88}} is "gpu util".
void put_members(const Json& object, const std::string& within, LogTable::Row& row) {
  constexpr std::size_t kLongest = 128;
  // nvtop calls its share of memory in use "mem_util"; of how many bytes it does not say.
  const std::string kMemoryInUse = "mem_util of nvtop";
  const bool nvtop = object.contains("gpu_clock") && object.contains("mem_util") && object.contains("device_name");
  if (is_of_telegraf(object)) {
    row["timestamp"] = member(object, "timestamp");
    put_members(object["tags"], "", row);
    return put_members(object["fields"], "", row);
  }
  for (const auto& [name, value] : object.items()) {
    const std::string column = within.empty() ? name : fmt::format("{} {}", within, name);
    if (value.is_object() && column.size() < kLongest)
      put_members(value, column, row);
    else if (!value.is_structured())
      row[nvtop && name == "mem_util" ? kMemoryInUse : column] = value.is_null() ? "" : cell_of(value);
  }
}

bool has_metric(const LogTable::Row& row) {
  return std::any_of(row.begin(), row.end(),
                     [](const auto& cell) { return has_role(cell.first, ColumnRole::kMetric); });
}

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
      rows[i][plural ? name.substr(0, name.size() - 1) : name] = cell.is_null() ? "" : cell_of(cell);
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
  const auto number = [](const Json& in, const char* name) { return parse_number<double>(member(in, name)); };
  const auto length = number(*period, "duration");
  std::optional<double> busiest;
  for (const Json& engine : *engines)
    if (const auto busy = engine.is_object() ? number(engine, "busy") : std::nullopt)
      busiest = std::max(busiest.value_or(0), *busy);
  if (!length || !busiest || member(*period, "unit") != "ms") return std::nullopt;
  elapsed_ms += *length;
  constexpr double kAll = 100;
  LogTable::Row row{{"elapsed_ms", fmt::format("{:.3f}", elapsed_ms)},
                    {"DeviceId", "0"},
                    {"utilization.gpu", fmt::format("{:.2f}", std::min(kAll, *busiest))}};
  if (const auto power = object.find("power"); power != object.end() && power->is_object())
    if (std::string watts = member(*power, "GPU"); !watts.empty()) row["power.draw"] = std::move(watts);
  if (const auto clock = object.find("frequency"); clock != object.end() && clock->is_object())
    if (std::string actual = member(*clock, "actual"); !actual.empty()) row["clocks.sm"] = std::move(actual);
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
    LineCursor lines(before);
    while (lines.next()) {
      auto stamp = time_of_line(lines.line());
      if (!stamp && !lines.complete()) stamp = time_before_object(lines.line());
      if (stamp) time_ = std::move(*stamp), place_ = 0;
      if (trim(lines.line()).starts_with('[')) place_ = 0;
    }
    if (is_of_telegraf(object) && !measures_gpus(member(object, "name"))) return;
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
    put_members(object, "", row);
    if (!has_metric(row) && add_by_gpu(object, {}, AnyKey::kYes)) return;
    for (const Json* item : has_metric(row) ? std::vector<const Json*>() : listed_in(object)) {
      LogTable::Row of_item = row;
      put_members(*item, "", of_item);
      put(std::move(of_item));
    }
    put(std::move(row));
  }
  // The rows; of a table with a row per metric if they are such.
  [[nodiscard]] LogTable table() {
    if (!table_.empty() || long_.empty()) return std::move(table_);
    auto table = table_of_long(long_.csv());
    return table ? std::move(*table) : LogTable{};
  }

 private:
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
    for (const char* name : {"Label", "label", "name", "metric"})
      if (const auto said = series.find(name); said != series.end() && said->is_string())
        metric = said->get<std::string>();
    for (const auto& [when, what] : {std::pair{"x", "y"}, std::pair{"Timestamps", "Values"},
                                     std::pair{"timestamps", "values"}, std::pair{"times", "values"}}) {
      const auto times = series.find(when), values = series.find(what);
      if (times == series.end() || values == series.end() || !times->is_array() || !values->is_array()) continue;
      const std::size_t count = std::min(times->size(), values->size());
      TimeReader reader({});
      if (count == 0 || !reader.read(cell_of(times->front())) || reader.since_beginning()) continue;
      const auto last = reader.read(cell_of((*times)[count - 1]));
      const bool newest_first = last && *last < *reader.read(cell_of(times->front()));
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = newest_first ? count - 1 - i : i;
        long_.add({{"timestamp", cell_of((*times)[at])}, {"metric", metric}, {"value", cell_of((*values)[at])}});
      }
      return true;
    }
    return false;
  }
  // {"2025-09-04 22:10:07": {"gpu0": {"util": 88}}, …}: each member is a row.
  bool add_by_time(const Json& object) {
    if (object.empty() || !object.begin()->is_object() || !time_of_line(object.begin().key())) return false;
    for (const auto& [time, members] : object.items()) {
      LogTable::Row row{{"timestamp", time}};
      if (members.is_object()) put_members(members, "", row);
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
      if (!value.is_structured()) beside[name] = value.is_null() ? "" : cell_of(value);
    bool found = false;
    for (const auto& [name, value] : object.items()) {
      const KeyOfGpu key = key_of_gpu(name);
      if (!value.is_object()) continue;
      if (key == KeyOfGpu::kNone || (key == KeyOfGpu::kNumber && any == AnyKey::kNo)) {
        found = (depth < kDeepest && add_by_gpu(value, beside, any, depth + 1)) || found;
        continue;
      }
      LogTable::Row row = beside;
      const bool own_time = std::any_of(value.items().begin(), value.items().end(), [](const auto& member) {
        return has_role(member.key(), ColumnRole::kTimestamp);
      });
      if (key != KeyOfGpu::kNumber || !own_time)  // else it is the number of a row
        row[key == KeyOfGpu::kUuid ? "uuid" : key == KeyOfGpu::kPci ? "pci.bus_id" : "index"] = name;
      put_members(value, "", row);
      if (!has_metric(row)) continue;
      found = true;
      put(std::move(row));
    }
    return found;
  }
  void put(LogTable::Row row) {
    if (put_metric(row)) return;
    const bool timed = std::any_of(row.begin(), row.end(),
                                   [](const auto& cell) { return has_role(cell.first, ColumnRole::kTimestamp); });
    if (!timed && !time_.empty()) row["timestamp"] = time_;
    if (!has_metric(row) || (!timed && time_.empty())) return;
    if (const auto device = row.find("device"); device != row.end() && parse_number<unsigned>(device->second))
      row.emplace("index", device->second), row.erase(device);
    const bool named = std::any_of(row.begin(), row.end(), [](const auto& cell) {
      return has_role(cell.first, ColumnRole::kIndex) || has_role(cell.first, ColumnRole::kUuid);
    });
    if (!timed && !named) row["index"] = fmt::format("{}", place_);
    ++place_;
    table_.add(row);
  }
  // {"key": "system/gpu_0_power_usage_watts", "value": 88, "timestamp": …} is no row but one reading of one.
  bool put_metric(const LogTable::Row& row) {
    std::vector<std::string_view> names;
    for (const auto& [name, cell] : row) names.push_back(name);
    if (!is_long_header(names)) return false;
    long_.add(row);
    return true;
  }
  LogTable table_, long_;  // with a row per metric
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

Result<LogTable> table_of_gpustat(std::string_view text) {
  LogTable table = trim(text).starts_with('{') ? LogTable{} : table_of_gpustat_text(text);
  ListedProcesses processes;
  for (const std::string_view object : objects_of(text)) {
    const Json answer = parse_json<Json>(object);
    if (!answer.is_object() || !answer.contains("gpus") || !answer["gpus"].is_array()) continue;
    const std::string time = time_of_answer(answer);
    for (const Json& gpu : answer["gpus"]) {
      if (!gpu.is_object()) continue;
      LogTable::Row row{{"driver_version", member(answer, "driver_version")}};
      if (!time.empty()) row["timestamp"] = time;
      for (const auto& [name, value] : gpu.items()) {
        if (value.is_structured()) continue;
        const std::string column = name == "utilization.enc"   ? "utilization.encoder"
                                   : name == "utilization.dec" ? "utilization.decoder"
                                                               : name;
        row[column] = cell_of(value);
      }
      if (const auto list = gpu.find("processes"); list != gpu.end() && list->is_array())
        take_users(*list, member(gpu, "index"), time, processes);
      table.add(row);
    }
  }
  processes.tell(table.extra);
  if (table.empty()) return fail(Errc::kInvalidInput, "no readings of GPUs in it", "gpustat --json >> gpus.json");
  return table;
}

namespace {

// Where a series is from: what its exporter calls the host, or the address that was scraped, without its port.
std::string host_of_series(const Json& labels) {
  for (const char* name : {"Hostname", "hostname", "host", "node", "kubernetes_node", "exported_instance"})
    if (std::string host = member(labels, name); !host.empty()) return host;
  const std::string instance = member(labels, "instance");
  const auto port = instance.rfind(':');
  const bool has_port = port != std::string::npos && port + 1 < instance.size() && port == instance.find(':') &&
                        instance.find_first_not_of("0123456789", port + 1) == std::string::npos;
  return instance.substr(0, has_port ? port : instance.size());
}

// The number of a series' GPU: "0" of gpu="0", and of device="nvidia0".
std::string index_of_series(const Json& labels) {
  for (const char* name : {"gpu", "index", "gpu_id", "minor_number", "device", "GpuIndex"}) {
    const std::string value = member(labels, name);
    const std::string digits = value.substr(value.find_last_not_of("0123456789") + 1);
    if (!digits.empty()) return digits;
  }
  return "";
}

}  // namespace

std::string column_of_series(const std::string& name) {
  if (const auto column = dcgm_column(name); !column.empty()) return std::string(column);
  const auto rule = csv_column(name);
  const bool kept = rule && !rule->gpu &&
                    (rule->role == ColumnRole::kMetric || rule->role == ColumnRole::kReasonBit ||
                     (rule->role == ColumnRole::kFact && rule->fact == DeviceFact::kMemoryTotal));
  return kept ? name : "";
}

namespace {

// Series of Prometheus, of one answer or several.
class PrometheusSeries {
 public:
  void add(const Json& series);
  [[nodiscard]] LogTable table() const {
    LogTable table;
    for (const auto& [key, row] : rows_) table.add(row);
    table.left_out.assign(left_out_.begin(), left_out_.end());
    return table;
  }
  [[nodiscard]] bool nameless() const { return nameless_; }
  // Answers of one moment each, and all of the same.
  [[nodiscard]] bool once() const {
    return instant_ && !rows_.empty() && rows_.begin()->first.first == rows_.rbegin()->first.first;
  }

 private:
  std::map<std::pair<double, std::string>, LogTable::Row> rows_;  // by time and GPU
  std::set<std::string> left_out_;
  bool nameless_ = false, instant_ = false;
};

void PrometheusSeries::add(const Json& series) {
  const bool known = series.is_object() && series.contains("metric") && series["metric"].is_object();
  const bool range = known && series.contains("values") && series["values"].is_array();
  if (!known || (!range && !series.contains("value"))) return;
  instant_ = instant_ || !range;
  const Json& labels = series["metric"];
  const std::string metric = member(labels, "__name__"), column = column_of_series(metric);
  nameless_ = nameless_ || metric.empty();
  if (column.empty()) {
    if (!metric.empty()) left_out_.insert(metric);
    return;
  }
  const std::string index = index_of_series(labels), host = host_of_series(labels);
  const std::string lower_uuid = member(labels, "uuid");
  const std::string uuid = lower_uuid.empty() ? member(labels, "UUID") : lower_uuid;
  const std::string lower_name = member(labels, "name");
  std::string name = lower_name.empty() ? member(labels, "modelName") : lower_name;
  if (name.empty()) name = member(labels, "GpuDeviceName");  // of Ray
  const auto put = [&](const Json& value) {
    if (!value.is_array() || value.size() != 2 || !value[0].is_number()) return;
    LogTable::Row& row = rows_[{value[0].get<double>(), uuid.empty() ? fmt::format("{} {}", host, index) : uuid}];
    if (row.empty()) {
      row["timestamp"] = fmt::format("{:.3f}", value[0].get<double>());
      if (!index.empty()) row["index"] = index;
      if (!host.empty()) row["hostname"] = host;
      if (!uuid.empty()) row["uuid"] = uuid;
      if (!name.empty()) row["name"] = name;
    }
    row[column] = cell_of(value[1]);
  };
  if (!range) return put(series["value"]);
  for (const Json& value : series["values"]) put(value);
}

}  // namespace

Result<LogTable> table_of_prometheus(std::string_view text) {
  const char* const kHint =
      "ask for a range: curl …/api/v1/query_range?query={__name__=~\"DCGM_FI_.*\"}&start=…&end=…&step=5";
  PrometheusSeries all;
  bool valid = false, results = false;
  for (const std::string_view object : objects_of(text)) {
    const Json answer = parse_json<Json>(object);
    if (!answer.is_object()) continue;
    valid = true;
    const auto data = answer.find("data");
    if (data == answer.end() || !data->is_object()) continue;
    const auto found = data->find("result");
    if (found == data->end() || !found->is_array()) continue;
    results = true;
    for (const Json& series : *found) all.add(series);
  }
  if (!valid) return fail(Errc::kInvalidInput, "not valid JSON", kHint);
  if (!results) return fail(Errc::kInvalidInput, "no results in it", kHint);
  LogTable table = all.table();
  if (table.empty() && all.nameless())
    return fail(Errc::kInvalidInput,
                "a range of numbers without the name of their metric, as avg() and its like leave it",
                "ask for the metric itself: curl …/api/v1/query_range?query=DCGM_FI_DEV_GPU_UTIL&start=…&end=…&step=5");
  if (table.empty() || all.once())
    return fail(Errc::kInvalidInput,
                table.empty() ? "no series of a GPU over a range in it that is known" : "readings of one moment",
                kHint);
  return table;
}

}  // namespace headroom
