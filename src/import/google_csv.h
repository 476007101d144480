// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// What Google Cloud Monitoring lets one download of a chart: a first line "TimeSeries ID,…", a line for each label of
// the series, then times and a number of each series. It comes back as a table whose columns are called by metric and
// labels; by the labels alone where no cell names the metric, as in most. Nothing for other texts.
[[nodiscard]] std::optional<std::string> csv_of_google(std::string_view text);

}  // namespace headroom
