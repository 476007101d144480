// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

namespace headroom {

inline constexpr double kMemoryReserve = 0.1;  // of a GPU's memory: for fragments, and for what the driver takes

// How many times as large a batch fits, if all of the memory in use (bytes) grows with it; what does not, such as
// weights, leaves more.
[[nodiscard]] inline double larger_batch_fits(double used, double total) {
  return (1 - kMemoryReserve) * total / std::max(1.0, used);
}

}  // namespace headroom
