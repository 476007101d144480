// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "report/document.h"

// The charts of the HTML document, each with its table. Empty where there is nothing to draw.
namespace headroom::report::html {

[[nodiscard]] std::string ledger_charts(const Document& d);  // a bar for each GPU, the waterfall of all
[[nodiscard]] std::string time_charts(const Document& d);  // strips of accounts; behind them readings, phases, findings
[[nodiscard]] std::string batch_charts(const Document& d);  // the Gantt chart
[[nodiscard]] std::string option_chart(const Document& d);  // gains as intervals

// Shapes of one GPU's strip, in as many units of width as it has bins and kStripHeight of height.
inline constexpr std::size_t kStripHeight = 40;
[[nodiscard]] std::string strip_shapes(const view::Strip& strip);
// The band between the lowest and the highest reading of each bin, in kSeriesHeight units of `most`.
inline constexpr std::size_t kSeriesHeight = 60;
[[nodiscard]] std::string series_path(const view::Series& series, double most);

}  // namespace headroom::report::html
