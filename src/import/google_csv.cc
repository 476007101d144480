// SPDX-License-Identifier: Apache-2.0
#include "import/google_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "import/log_reader.h"
#include "import/table.h"

namespace headroom {

namespace {

constexpr std::string_view kFirst = "TimeSeries ID";

struct GoogleMetric {
  std::string_view type, column;
};
constexpr std::array kGoogleMetrics{
    GoogleMetric{"gpu/utilization", "gpu_util_percent"},         GoogleMetric{"duty_cycle", "gpu_util_percent"},
    GoogleMetric{"gpu/memory/bytes_used", "gpu_mem_used_bytes"}, GoogleMetric{"/memory_used", "gpu_mem_used_bytes"},
    GoogleMetric{"/memory_total", "gpu_mem_total_bytes"},
};

// What the lines above the rows say of a series.
struct GoogleSeries {
  std::string id, metric, gpu, uuid, host;

  void labelled(std::string_view label, std::string_view value) {
    const auto dot = label.rfind('.');  // "metric.labels.gpu_number"
    if (dot != std::string_view::npos) label.remove_prefix(dot + 1);
    if (label == "gpu_number" || label == "gpu") gpu = value;
    if (label == "uuid" || label == "UUID" || label == "accelerator_id") uuid = value;
    const bool named = label == "instance_name" || label == "node_name" || label == "Hostname";
    if (named || (label == "instance_id" && host.empty())) host = value;
    take_metric(value);
  }
  // A cell may hold the type of the metric.
  void take_metric(std::string_view cell) {
    for (const GoogleMetric& known : kGoogleMetrics)
      if (metric.empty() && cell.find(known.type) != std::string_view::npos) metric = known.column;
    for (const std::string_view part : split(cell, '/'))
      if (metric.empty() && !dcgm_column(part).empty()) metric = part;
  }
  // And labels in brackets: "… (gpu_number: 0, instance_id: 88)".
  void told(std::string_view cell) {
    take_metric(cell);
    const auto open = cell.find('(');
    if (open == std::string_view::npos || !cell.ends_with(')')) return;
    for (const std::string_view pair : split(cell.substr(open + 1, cell.size() - open - 2), ',')) {
      const auto colon = pair.find(':');
      if (colon != std::string_view::npos) labelled(trim(pair.substr(0, colon)), trim(pair.substr(colon + 1)));
    }
  }
  [[nodiscard]] std::string name() const {
    if (gpu.empty() && uuid.empty()) return metric.empty() ? id : metric;
    std::string labels;
    for (const auto& [label, value] : {std::pair{"Hostname", &host}, std::pair{"UUID", &uuid}, std::pair{"gpu", &gpu}})
      if (!value->empty()) labels += fmt::format("{}{}=\"{}\"", labels.empty() ? "" : ", ", label, *value);
    return fmt::format("{}{{{}}}", metric, labels);
  }
};

// "Thu Sep 04 2025 10:00:00 GMT+0900 (Japan Standard Time)"
bool begins_with_time(const std::vector<std::string_view>& cells) {
  return !cells.empty() && cells[0].find(':') != std::string_view::npos && TimeReader({}).read(cells[0]).has_value();
}

}  // namespace

std::optional<std::string> csv_of_google(std::string_view text) {
  std::vector<std::string_view> cells;
  std::vector<GoogleSeries> series;
  LineCursor lines(text);
  if (!lines.next()) return std::nullopt;
  split_cells(lines.line(), ',', cells);
  if (cells.size() < 2 || cells[0] != kFirst) return std::nullopt;
  series.resize(cells.size() - 1);
  for (std::size_t i = 0; i < series.size(); ++i) {
    series[i].id = cells[i + 1];
    series[i].told(cells[i + 1]);
  }
  std::string rows;
  while (lines.next()) {
    split_cells(lines.line(), ',', cells);
    if (rows.empty() && !begins_with_time(cells)) {
      for (std::size_t i = 0; i < series.size() && i + 1 < cells.size(); ++i)
        series[i].labelled(cells[0], cells[i + 1]);
      continue;
    }
    rows += lines.line();
    if (lines.complete()) rows += '\n';
  }
  if (rows.empty()) return std::nullopt;
  std::string csv = "timestamp";
  for (const GoogleSeries& one : series) {
    csv += ',';
    put_quoted(one.name(), csv);
  }
  return csv + '\n' + rows;
}

}  // namespace headroom
