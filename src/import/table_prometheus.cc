// SPDX-License-Identifier: Apache-2.0
// What Prometheus answers: series over a range, or of moments.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "import/json_members.h"
#include "import/log_column.h"
#include "import/table.h"

namespace headroom {

namespace {

using Json = nlohmann::json;

// What the first of these labels says that says something.
std::string first_label(const Json& labels, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (std::string said = json_member(labels, name); !said.empty()) return said;
  return "";
}

// Where a series is from: what its exporter calls the host, or the address that was scraped, without its port.
std::string host_of_series(const Json& labels) {
  std::string host =
      first_label(labels, {"Hostname", "hostname", "host", "node", "kubernetes_node", "exported_instance"});
  if (!host.empty()) return host;
  const std::string instance = json_member(labels, "instance");
  const auto port = instance.rfind(':');
  const bool has_port = port != std::string::npos && port + 1 < instance.size() && port == instance.find(':') &&
                        instance.find_first_not_of("0123456789", port + 1) == std::string::npos;
  return instance.substr(0, has_port ? port : instance.size());
}

// The number of a series' GPU: "0" of gpu="0", and of device="nvidia0".
std::string index_of_series(const Json& labels) {
  for (const char* name : {"gpu", "index", "gpu_id", "minor_number", "device", "GpuIndex"}) {
    const std::string value = json_member(labels, name);
    std::string digits = value.substr(value.find_last_not_of("0123456789") + 1);
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

// The GPU of a series: what tells it apart from others, and what the labels say of it.
struct SeriesGpu {
  std::string key;
  LogTable::Row facts;
};

SeriesGpu gpu_of_series(const Json& labels) {
  const std::string index = index_of_series(labels), host = host_of_series(labels);
  const std::string uuid = first_label(labels, {"uuid", "UUID"});
  const std::string name = first_label(labels, {"name", "modelName", "GpuDeviceName"});  // the last one of Ray
  SeriesGpu gpu{.key = uuid.empty() ? fmt::format("{} {}", host, index) : uuid,
                .facts = {{"index", index}, {"hostname", host}, {"uuid", uuid}, {"name", name}}};
  std::erase_if(gpu.facts, [](const auto& fact) { return fact.second.empty(); });
  return gpu;
}

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
  void put(const SeriesGpu& gpu, const std::string& column, const Json& value);

  std::map<std::pair<double, std::string>, LogTable::Row> rows_;  // by time and GPU
  std::set<std::string> left_out_;
  bool nameless_ = false, instant_ = false;
};

// `value`: a time, and what was read then.
void PrometheusSeries::put(const SeriesGpu& gpu, const std::string& column, const Json& value) {
  if (!value.is_array() || value.size() != 2 || !value[0].is_number()) return;
  const auto time = value[0].get<double>();
  LogTable::Row& row = rows_[{time, gpu.key}];
  if (row.empty()) {
    row = gpu.facts;
    row["timestamp"] = fmt::format("{:.3f}", time);
  }
  row[column] = json_cell(value[1]);
}

void PrometheusSeries::add(const Json& series) {
  const bool known = series.is_object() && series.contains("metric") && series["metric"].is_object();
  const bool range = known && series.contains("values") && series["values"].is_array();
  if (!known || (!range && !series.contains("value"))) return;
  instant_ = instant_ || !range;
  const Json& labels = series["metric"];
  const std::string metric = json_member(labels, "__name__"), column = column_of_series(metric);
  nameless_ = nameless_ || metric.empty();
  if (column.empty()) {
    if (!metric.empty()) left_out_.insert(metric);
    return;
  }
  const SeriesGpu gpu = gpu_of_series(labels);
  if (!range) return put(gpu, column, series["value"]);
  if (const auto times = series.find("timestamps"); times != series.end() && times->is_array()) {
    constexpr double kMilliseconds = 1000;
    for (std::size_t i = 0; i < std::min(times->size(), series["values"].size()); ++i)
      if ((*times)[i].is_number())
        put(gpu, column, Json::array({(*times)[i].get<double>() / kMilliseconds, series["values"][i]}));
    return;
  }
  for (const Json& value : series["values"]) put(gpu, column, value);
}

}  // namespace

namespace {

// nullptr: it has none. A line of VictoriaMetrics' export is one.
const Json* series_of(Json& answer) {
  if (answer.contains("metric") && answer.contains("timestamps")) {
    answer = Json::array({std::move(answer)});
    return &answer;
  }
  const auto data = answer.find("data");
  if (data == answer.end() || !data->is_object()) return nullptr;
  const auto found = data->find("result");
  return found == data->end() || !found->is_array() ? nullptr : &*found;
}

}  // namespace

Result<LogTable> table_of_prometheus(std::string_view text) {
  constexpr const char* kHint =
      "ask for a range: curl …/api/v1/query_range?query={__name__=~\"DCGM_FI_.*\"}&start=…&end=…&step=5";
  PrometheusSeries all;
  bool valid = false, results = false;
  for (const std::string_view object : objects_of(text)) {
    Json answer = parse_json<Json>(object);
    if (!answer.is_object()) continue;
    valid = true;
    const Json* const series = series_of(answer);
    if (!series) continue;
    results = true;
    for (const Json& one : *series) all.add(one);
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
