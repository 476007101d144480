// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/result.h"

namespace headroom {

// The middle one of the values, of which there is at least one; of an even number the upper of the two in the middle,
// so that it is always a value that occurs. Linear.
template <class T>
[[nodiscard]] T median(std::vector<T> values) {
  HR_CHECK(!values.empty(), "nothing has no middle");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace headroom
