// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "model/explanation.h"
#include "model/recording.h"
#include "model/thresholds.h"

namespace headroom {

// A stretch of a recording's time: a reading at `begin` speaks for the time before it, one at `end` for the last of it.
struct Window {
  Nanos begin = 0, end = 0;
  [[nodiscard]] Nanos length() const { return end - begin; }
  [[nodiscard]] bool holds(Nanos reading) const { return reading > begin && reading <= end; }
  bool operator==(const Window&) const = default;
};

// In order of time, those that overlap or touch as one.
[[nodiscard]] std::vector<Window> joined(std::vector<Window> windows);

// Statistics of one metric of a device's readings. Power readings that cannot be true are left out and listed:
//   far above the enforced power limit, where the recording knows it, else
//   by the Hampel identifier (Hampel 1974: median and median absolute deviation), where few readings are that far out
//   and the furthest kept reading is well below them; the figures are Thresholds'.
// Only readings of (begin, end] count. nullopt where the recording has no such column at all.
[[nodiscard]] std::optional<MetricStats> metric_stats(const Recording& recording, SourceId gpu, Metric metric,
                                                      const Window& window, const Thresholds& limits = {});

// Only which readings of the metric are left out, and why; the rest of the answer is empty. For mean_between.
[[nodiscard]] MetricStats excluded_readings(const Recording& recording, SourceId gpu, Metric metric,
                                            const Thresholds& limits = {});

// The metrics people ask about first, in that order; only those the recording has.
[[nodiscard]] std::vector<MetricStats> device_stats(const Recording& recording, SourceId gpu, const Window& window,
                                                    const Thresholds& limits = {});

// The mean of a metric's readings that are of [begin, end] alone, excluded readings left out; nullopt where there are
// none. What the driver averages over a second (power, use of memory) is of what was before `begin` until that is over.
[[nodiscard]] std::optional<double> mean_between(const Track& track, const MetricStats& stats, Nanos begin, Nanos end);

}  // namespace headroom
