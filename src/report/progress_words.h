// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "model/explanation.h"

// Where a job is, and what it said of its metrics, in words.
namespace headroom::report {

// "epochs" of it.
[[nodiscard]] std::string_view unit_name(Progress::Unit unit);
// "fold 1/2, epoch 3/5, step 120/267; 12 to 14 min left; next validation in 1 to 2 min".
[[nodiscard]] std::string progress_words(const Progress& progress);

// "12 to 14 min": outwards to whole seconds, minutes, or tenths of hours.
[[nodiscard]] std::string seconds_between(double low, double high);

// "0.34 last, 2.31 first, 0.31 best (lowest) of 12"; of one value that alone.
[[nodiscard]] std::string metric_words(const SaidMetric& metric);
// "█▅▃▂▁▁": from the lowest to the highest of the values; "" for fewer than two. Of more values than `cells` as many
// are drawn, the first and the last among them.
[[nodiscard]] std::string curve_text(const std::vector<double>& values, std::size_t cells = kMostOfCurve);

}  // namespace headroom::report
