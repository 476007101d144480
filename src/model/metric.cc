// SPDX-License-Identifier: Apache-2.0
#include "model/metric.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/enum_table.h"
#include "model/absent.h"

namespace headroom {

namespace {
constexpr std::array kMetrics{
#define HEADROOM_METRIC_ROW(id, name, unit, kind, exp10, help) \
  MetricInfo{Metric::id, name, unit, MetricKind::kind, exp10, help},
    HEADROOM_METRICS(HEADROOM_METRIC_ROW)
#undef HEADROOM_METRIC_ROW
};
static_assert(in_order_of_ids(kMetrics));
constexpr std::array kPowersOfTen{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
}  // namespace

std::span<const MetricInfo> metrics() { return kMetrics; }
const MetricInfo& info(Metric metric) { return kMetrics[static_cast<std::size_t>(metric)]; }

std::optional<Metric> metric_of(std::string_view name) {
  const auto found = std::find_if(kMetrics.begin(), kMetrics.end(), [&](const auto& m) { return m.name == name; });
  if (found == kMetrics.end()) return std::nullopt;
  return found->id;
}

double to_unit(Metric metric, std::int64_t stored) {
  return static_cast<double>(stored) / kPowersOfTen[static_cast<std::size_t>(info(metric).exp10)];
}

std::int64_t from_unit(Metric metric, double value) {
  const double scaled = std::round(value * kPowersOfTen[static_cast<std::size_t>(info(metric).exp10)]);
  constexpr double kLimit = 9.2e18;  // below 2^63, exactly representable neighbours
  if (scaled >= kLimit) return std::numeric_limits<std::int64_t>::max();
  if (scaled <= -kLimit) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(scaled);
}

std::string_view absent_name(Absent absent) {
  const auto found = std::find_if(kAbsents.begin(), kAbsents.end(), [&](const auto& a) { return a.id == absent; });
  return found == kAbsents.end() ? "error" : found->name;
}

std::string_view absent_text(Absent absent) {
  const auto found = std::find_if(kAbsents.begin(), kAbsents.end(), [&](const auto& a) { return a.id == absent; });
  return found == kAbsents.end() ? "unknown reason" : found->text;
}

std::optional<Absent> absent_of(std::string_view name) {
  const auto found = std::find_if(kAbsents.begin(), kAbsents.end(), [&](const auto& a) { return a.name == name; });
  if (found == kAbsents.end()) return std::nullopt;
  return found->id;
}

}  // namespace headroom
