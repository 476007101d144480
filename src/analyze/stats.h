// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "model/explanation.h"
#include "model/recording.h"

namespace headroom {

// Statistics of one metric of a device's readings. Power readings that cannot be true are left out and listed:
//   above 1.25 times the enforced power limit, where the recording knows it, else
//   by the Hampel identifier (Hampel 1974: median and median absolute deviation) with k = 10, where at most one
//   reading in fifty is that far out and the furthest kept reading is less than half of it.
// nullopt where the recording has no such column at all.
[[nodiscard]] std::optional<MetricStats> metric_stats(const Recording& recording, SourceId gpu, Metric metric);

// Only which readings of the metric are left out, and why; the rest of the answer is empty. For mean_between.
[[nodiscard]] MetricStats excluded_readings(const Recording& recording, SourceId gpu, Metric metric);

// The metrics people ask about first, in that order; only those the recording has.
[[nodiscard]] std::vector<MetricStats> device_stats(const Recording& recording, SourceId gpu);

// The mean of a metric's readings within [begin, end), excluded readings left out; nullopt where there are none.
[[nodiscard]] std::optional<double> mean_between(const Track& track, const MetricStats& stats, Nanos begin, Nanos end);

}  // namespace headroom
