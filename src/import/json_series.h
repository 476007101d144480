// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "import/table.h"

namespace headroom {

// The rows of a table in JSON with its names once and a list for each row, the oldest first; of none where one has not
// as many cells as there are names, or no time and no reading of a GPU. {"columns": ["time", "utilization_gpu"],
// "values": [[…, 88], …], "tags": {"index": "0"}} of InfluxDB's queries, {"labels": …, "data": …} of Netdata, and
// {"columns": …, "data": …} of pandas.
[[nodiscard]] std::vector<LogTable::Row> rows_of_split(const nlohmann::json& series);

// Times and values of one metric: rows of "timestamp", "metric", "value", and "labels" where it has some. In two lists,
// {"x": [1764400000000, …], "y": [88, …]} of ClearML, {"Timestamps": […], "Values": […]} of CloudWatch; or in pairs,
// {"target": …, "datapoints": [[88, 1764400000], …]} of Graphite, {"metric": …, "scope": "host:a,gpu:0", "pointlist":
// [[1764400000000, 88], …]} of Datadog, {"metric": …, "tags": {"gpu": "0"}, "dps": {"1764400000": 88}} of OpenTSDB.
[[nodiscard]] std::vector<LogTable::Row> readings_of_series(const std::string& metric, const nlohmann::json& series);

}  // namespace headroom
