// SPDX-License-Identifier: Apache-2.0
#include "import/json_series.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "import/json_members.h"
#include "import/log_time.h"

namespace headroom {

namespace {

using Json = nlohmann::json;

const Json* list_in(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_array() ? &*found : nullptr;
}

bool has_cell_of(const LogTable::Row& row, ColumnRole role) {
  return std::any_of(row.begin(), row.end(), [&](const auto& cell) { return has_role(cell.first, role); });
}

std::optional<Nanos> time_in_row(const LogTable::Row& row) {
  const auto cell =
      std::find_if(row.begin(), row.end(), [](const auto& one) { return has_role(one.first, ColumnRole::kTimestamp); });
  return cell == row.end() ? std::nullopt : TimeReader({}).read(cell->second);
}

// Nothing where there are more or fewer cells than names.
std::optional<LogTable::Row> row_of_list(const Json& names, const Json& cells, LogTable::Row row) {
  if (!cells.is_array() || cells.size() != names.size()) return std::nullopt;
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (const std::string name = json_cell(names[i]); !name.empty() && !cells[i].is_structured())
      row[name] = cells[i].is_null() ? "" : json_cell(cells[i]);
  return row;
}

std::vector<LogTable::Row> rows_of_lists(const Json& names, const Json& lists, const LogTable::Row& around) {
  std::vector<LogTable::Row> rows;
  for (const Json& cells : lists) {
    auto row = row_of_list(names, cells, around);
    if (!row) return {};
    rows.push_back(std::move(*row));
  }
  if (rows.empty() || !has_cell_of(rows[0], ColumnRole::kMetric) || !has_cell_of(rows[0], ColumnRole::kTimestamp))
    return {};
  const auto first = time_in_row(rows.front()), last = time_in_row(rows.back());
  if (first && last && *last < *first) std::reverse(rows.begin(), rows.end());
  return rows;
}

// The oldest first.
std::vector<LogTable::Row> readings_of_lists(const std::string& metric, const Json& series) {
  for (const auto& [when, what] : {std::pair{"x", "y"}, std::pair{"Timestamps", "Values"},
                                   std::pair{"timestamps", "values"}, std::pair{"times", "values"}}) {
    const Json *times = list_in(series, when), *values = list_in(series, what);
    if (!times || !values) continue;
    const std::size_t count = std::min(times->size(), values->size());
    TimeReader reader({});
    const auto first = count == 0 ? std::nullopt : reader.read(json_cell(times->front()));
    if (!first || reader.since_beginning()) continue;
    std::vector<LogTable::Row> readings;
    for (std::size_t i = 0; i < count; ++i)
      readings.push_back(
          {{"timestamp", json_cell((*times)[i])}, {"metric", metric}, {"value", json_cell((*values)[i])}});
    const auto last = reader.read(json_cell((*times)[count - 1]));
    if (last && *last < *first) std::reverse(readings.begin(), readings.end());
    return readings;
  }
  return {};
}

// What a series says of itself: a text, or an object as text.
std::string labels_of(const Json& series) {
  for (const char* name : {"scope", "tags"})
    if (const auto said = series.find(name); said != series.end()) {
      if (said->is_string()) return said->get<std::string>();
      if (said->is_object() && !said->empty()) return said->dump();
    }
  return "";
}

}  // namespace

std::vector<LogTable::Row> rows_of_split(const Json& series) {
  LogTable::Row around;
  if (const auto tags = series.find("tags"); tags != series.end() && tags->is_object())
    put_json_members(*tags, "", around);
  for (const auto& [names_in, rows_in] :
       {std::pair{"columns", "values"}, std::pair{"columns", "data"}, std::pair{"labels", "data"}}) {
    const Json *names = list_in(series, names_in), *lists = list_in(series, rows_in);
    if (names && lists) return rows_of_lists(*names, *lists, around);
  }
  return {};
}

std::vector<LogTable::Row> readings_of_series(const std::string& metric, const Json& series) {
  std::vector<LogTable::Row> readings = readings_of_lists(metric, series);
  if (!readings.empty()) return readings;
  const std::string labels = labels_of(series);
  const auto add = [&](std::string time, const Json& value) {
    if (!value.is_number()) return;
    readings.push_back({{"timestamp", std::move(time)}, {"metric", metric}, {"value", json_cell(value)}});
    if (!labels.empty()) readings.back()["labels"] = labels;
  };
  for (const auto& [name, time_at] : {std::pair{"datapoints", std::size_t{1}}, std::pair{"pointlist", std::size_t{0}}})
    if (const Json* points = list_in(series, name))
      for (const Json& point : *points)
        if (point.is_array() && point.size() == 2 && point[time_at].is_number())
          add(json_cell(point[time_at]), point[1 - time_at]);
  if (const auto points = series.find("dps"); points != series.end() && points->is_object())
    for (const auto& [time, value] : points->items()) add(time, value);
  return readings;
}

}  // namespace headroom
