// SPDX-License-Identifier: Apache-2.0
#include "cli/viewed_metrics.h"

#include <vector>

#include "diagnose/explain.h"

namespace headroom::cli {

std::span<const Metric> metrics_not_viewed() {
  static const std::vector<Metric> metrics = [] {
    std::vector<Metric> left;
    for (const Metric metric : metrics_not_explained())
      if (metric != Metric::kPower && metric != Metric::kTemperature && metric != Metric::kRss &&
          metric != Metric::kProcessGpuMemory)
        left.push_back(metric);
    return left;
  }();
  return metrics;
}

}  // namespace headroom::cli
