// SPDX-License-Identifier: Apache-2.0
#include "tune/step_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headroom::tune {

void StepValues::add(std::int64_t step, double value) {
  Values& values = steps_[step];
  ++values.reported;
  if (!std::isnan(value)) values.sorted.insert(std::ranges::upper_bound(values.sorted, value), value);
}

double StepValues::percentile(std::int64_t step, double percentile, std::int64_t least) const {
  const auto found = steps_.find(step);
  if (found == steps_.end() || found->second.reported < least || found->second.sorted.empty())
    return std::numeric_limits<double>::quiet_NaN();
  const auto& sorted = found->second.sorted;
  const double place = static_cast<double>(sorted.size() - 1) * (percentile / 100);
  const auto below = std::min(static_cast<std::size_t>(place), sorted.size() - 1);
  const double low = sorted[below], high = sorted[std::min(below + 1, sorted.size() - 1)];
  const double part = place - static_cast<double>(below), width = high - low;
  // From the nearer side, so that the last bit agrees with NumPy's.
  return part < 0.5 ? low + width * part : high - width * (1 - part);
}

}  // namespace headroom::tune
