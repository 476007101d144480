// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "analyze/stats.h"
#include "model/recording.h"

namespace headroom {

// Several GPUs that are low in the same readings, and usually are not: what they wait for they have in common.
struct CommonLows {
  std::size_t low = 0, shared = 0;  // readings of the one that is low most often, and those of them with all others low
};

// `tracks`: of the GPUs that work. Nothing where they are low at times of their own, or hardly ever, or most of the
// time.
[[nodiscard]] std::optional<CommonLows> common_lows(const std::vector<const Track*>& tracks, const Window& window,
                                                    Nanos interval);

}  // namespace headroom
