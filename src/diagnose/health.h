// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "analyze/analysis.h"

namespace headroom::diagnose {

// The checklist that people go through by hand: on the GPU? memory? clocks? progress? out of memory?
[[nodiscard]] std::vector<HealthCheck> health(const Analysis& a);

}  // namespace headroom::diagnose
