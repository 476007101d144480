// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>

#include "model/metric.h"

namespace headroom::cli {

// Metrics that neither an explanation nor a view of it looks at, for ReadOptions::leave_out.
[[nodiscard]] std::span<const Metric> metrics_not_viewed();

}  // namespace headroom::cli
