// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "tune/timeline.h"

namespace headroom::tune {

struct StoodStill {
  double seconds = 0;  // in all
  StudyAnomaly anomaly;
};

// Whether the study stood still (standstill.h), in words; absent: it did not.
[[nodiscard]] std::optional<StoodStill> stood_still(const Timeline& timeline);

}  // namespace headroom::tune
