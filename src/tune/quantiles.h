// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "base/result.h"
#include "model/study_report.h"

namespace headroom::tune {

// Nearest rank; of at least one value.
[[nodiscard]] inline double nearest_rank(const std::vector<double>& sorted, double share) {
  HR_CHECK(!sorted.empty(), "nothing has no ranks");
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  const auto index = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
  return sorted[std::min(index, sorted.size() - 1)];
}

[[nodiscard]] inline Quantiles quantiles(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {.count = static_cast<std::int64_t>(values.size()),
          .min = values.front(),
          .p10 = nearest_rank(values, 0.1),
          .p50 = nearest_rank(values, 0.5),
          .p90 = nearest_rank(values, 0.9),
          .max = values.back()};
}

// The middle value, and between which ranks the middle of all such values lies 90 % of the time (binomial, as a normal
// distribution). Of at least one value.
[[nodiscard]] inline Estimate middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double half = 1.645 * 0.5 / std::sqrt(static_cast<double>(values.size()));
  return {.low = nearest_rank(values, std::max(0.0, 0.5 - half)),
          .value = nearest_rank(values, 0.5),
          .high = nearest_rank(values, std::min(1.0, 0.5 + half))};
}

}  // namespace headroom::tune
