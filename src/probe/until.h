// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>

#include "model/comparison.h"

namespace headroom::probe {

enum class Next : std::uint8_t {
  kGoOn,
  kNarrow,  // the interval is as narrow as was asked for
  kCannot,  // a reason refuses the comparison that more repeats do not mend
};
// After a pair of repeats. `half_width`: of the interval, as a share of the ratio; absent: however wide.
[[nodiscard]] Next after_pair(const Comparison& so_far, std::optional<double> half_width);

}  // namespace headroom::probe
