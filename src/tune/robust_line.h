// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "model/study_report.h"

namespace headroom::tune {

struct Line {
  double intercept = 0, slope = 0;
};

struct RobustLine {
  Estimate intercept, slope;
};

// y over x as a line that a quarter of the points may lie far off: Theil-Sen (Theil 1950, Sen 1968), the median of the
// slopes of pairs, and the median of what the slope leaves. Of many points a fixed random sample of pairs is taken, so
// that it stays linear. Absent: no two points differ in x.
[[nodiscard]] std::optional<Line> theil_sen(const std::vector<std::pair<double, double>>& points);

// The same with ranges, of a bootstrap over points. Absent: fewer than 8 points, or no slope that is surely above 0.
[[nodiscard]] std::optional<RobustLine> robust_line(const std::vector<std::pair<double, double>>& points);

}  // namespace headroom::tune
