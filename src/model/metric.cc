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

struct Bounds {
  std::int64_t low = 0, high = std::numeric_limits<std::int64_t>::max();
  std::optional<std::int64_t> unknown = std::nullopt;
};

constexpr bool is_of_the_driver(Metric metric) {  // whole percents; performance counters may overshoot
  return metric == Metric::kGpuUtil || metric == Metric::kMemoryUtil || metric == Metric::kEncoderUtil ||
         metric == Metric::kDecoderUtil || metric == Metric::kProcessSmUtil || metric == Metric::kProcessMemoryUtil;
}

// What can be true of any machine, in units of the metric; tighter doubts are the analysis's.
constexpr Bounds bounds_of(Metric metric, std::string_view unit, MetricKind kind) {
  constexpr auto kLastChannel = static_cast<std::int64_t>(WaitChannel::kUnknown);
  constexpr std::int64_t kPebibyte = std::int64_t{1} << 50, kMost = std::int64_t{1} << 32;
  switch (metric) {
    case Metric::kWaitChannel:
      return {0, kLastChannel, kLastChannel};
    case Metric::kProcessState:
      return {0, 127, '?'};
    case Metric::kPerformanceState:
      return {0, 32};
    case Metric::kPcieLinkGen:
      return {0, 16};
    case Metric::kPcieLinkWidth:
      return {0, 64};
    case Metric::kFan:
      return {0, 2};
    default:
      break;
  }
  if (kind != MetricKind::kGauge) return {};
  if (unit == "ratio") return {0, is_of_the_driver(metric) ? 1 : 2};
  if (unit == "watts") return {0, 20'000};
  if (unit == "celsius") return {-60, 200};
  if (unit == "mhz") return {0, 20'000};
  if (unit == "bytes" || unit == "bytes/s") return {0, 16 * kPebibyte};
  return {0, kMost};
}

constexpr MetricInfo row(Metric id, std::string_view name, std::string_view unit, MetricKind kind, int exp10,
                         std::string_view help) {
  Bounds bounds = bounds_of(id, unit, kind);
  if (bounds.high != std::numeric_limits<std::int64_t>::max())
    for (int i = 0; i < exp10; ++i) bounds.low *= 10, bounds.high *= 10;
  return {id, name, unit, kind, exp10, help, bounds.low, bounds.high, bounds.unknown};
}

constexpr std::array kMetrics{
#define HEADROOM_METRIC_ROW(id, name, unit, kind, exp10, help) \
  row(Metric::id, name, unit, MetricKind::kind, exp10, help),
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
