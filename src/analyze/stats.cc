// SPDX-License-Identifier: Apache-2.0
#include "analyze/stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/median.h"
#include "model/entities.h"

namespace headroom {

std::vector<Window> joined(std::vector<Window> windows) {
  const auto is_before = [](const Window& one, const Window& other) { return one.begin < other.begin; };
  if (!std::is_sorted(windows.begin(), windows.end(), is_before)) std::sort(windows.begin(), windows.end(), is_before);
  std::vector<Window> apart;
  apart.reserve(windows.size());
  for (const Window& window : windows)
    if (!apart.empty() && window.begin <= apart.back().end)
      apart.back().end = std::max(apart.back().end, window.end);
    else
      apart.push_back(window);
  return apart;
}

namespace {

constexpr double kMadToSigma = 1.4826;  // of a normal distribution

struct Value {
  Nanos at;
  double value;
};

std::vector<Value> readings(const Track& track, const Column& column) {
  std::vector<Value> values;
  values.reserve(column.values.size());
  for (std::size_t row = 0; row < column.values.size(); ++row)
    if (column.has(row)) values.push_back({track.at[row], to_unit(column.metric, column.values[row])});
  return values;
}

// None where all of them are: then the limit is what is wrong.
std::vector<ExcludedReading> above_limit(const Track& track, const Column& column, double limit, double over) {
  std::vector<ExcludedReading> excluded;
  std::size_t count = 0;
  for (std::size_t row = 0; row < column.values.size(); ++row) {
    if (!column.has(row)) continue;
    ++count;
    const double value = to_unit(column.metric, column.values[row]);
    if (value > over * limit)
      excluded.push_back({track.at[row], value, fmt::format("above the enforced limit of {:g} W", limit)});
  }
  return excluded.size() < count ? excluded : std::vector<ExcludedReading>{};
}

std::vector<ExcludedReading> hampel(const std::vector<Value>& values, const Thresholds& limits) {
  if (static_cast<double>(values.size()) < limits[Threshold::kHampelReadings]) return {};
  std::vector<double> plain, deviations;
  for (const auto& v : values) plain.push_back(v.value);
  const double middle = median(plain);
  for (const double v : plain) deviations.push_back(std::abs(v - middle));
  const double sigma = std::max(kMadToSigma * median(deviations), 0.01 * std::abs(middle));
  std::vector<ExcludedReading> excluded;
  double furthest_kept = 0;
  for (const auto& [at, value] : values) {
    const double score = (value - middle) / std::max(sigma, 1e-9);
    if (score > limits[Threshold::kHampelScore])
      excluded.push_back(
          {at, value,
           fmt::format("Hampel identifier: {:.0f} scaled deviations above the median {:.1f} W", score, middle)});
    else
      furthest_kept = std::max(furthest_kept, value);
  }
  const bool rare =
      static_cast<double>(excluded.size()) <= limits[Threshold::kHampelRare] * static_cast<double>(values.size());
  const bool alone = std::all_of(excluded.begin(), excluded.end(), [&](const auto& e) {
    return e.value > limits[Threshold::kHampelAlone] * furthest_kept;
  });
  return rare && alone ? excluded : std::vector<ExcludedReading>{};
}

std::optional<double> power_limit(const Recording& recording, SourceId gpu) {
  const auto& track = recording.tracks[static_cast<std::size_t>(gpu)];
  if (const Column* column = track.find(Metric::kPowerLimit)) {
    double highest = 0;
    for (std::size_t row = 0; row < column->values.size(); ++row)
      if (column->has(row)) highest = std::max(highest, to_unit(Metric::kPowerLimit, column->values[row]));
    if (highest > 0) return highest;
  }
  return device_of(recording.sources[static_cast<std::size_t>(gpu)]).power_limit_watts;
}

// Order statistics of stored integers, without sorting them all: utilisations, clocks and temperatures take few
// different values, and counting those is many times faster.
class Ranks {
 public:
  Ranks(std::span<const std::int64_t> values, std::int64_t low, std::int64_t high) : size_(values.size()), low_(low) {
    constexpr std::uint64_t kCountable = 1 << 14;
    const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    if (range >= kCountable) {
      values_.assign(values.begin(), values.end());
      return;
    }
    counts_.resize(range + 1);
    for (const std::int64_t value : values) ++counts_[static_cast<std::size_t>(value - low)];
  }

  // The smallest value that at least the share `q` of all values does not exceed.
  [[nodiscard]] std::int64_t at(double q) {
    const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(size_)));
    const std::size_t index = std::clamp<std::size_t>(rank, 1, size_) - 1;
    if (counts_.empty()) {
      const auto place = values_.begin() + static_cast<std::ptrdiff_t>(index);
      std::nth_element(values_.begin(), place, values_.end());
      return *place;
    }
    std::size_t below = 0, step = 0;
    while (below + counts_[step] <= index) below += counts_[step++];
    return low_ + static_cast<std::int64_t>(step);
  }

 private:
  std::size_t size_;
  std::int64_t low_;
  std::vector<std::uint32_t> counts_;  // of low_, low_ + 1, …; empty where the values are too far apart
  std::vector<std::int64_t> values_;   // then these
};

void summarise(MetricStats& stats, std::span<const std::int64_t> values) {
  const auto unit = [&](std::int64_t stored) { return to_unit(stats.metric, stored); };
  std::int64_t low = values.front(), high = low;
  double sum = 0;  // of integers: exact up to 2^53
  for (const std::int64_t value : values) {
    low = std::min(low, value);
    high = std::max(high, value);
    sum += static_cast<double>(value);
  }
  stats.samples = static_cast<std::int64_t>(values.size());
  stats.mean = sum / static_cast<double>(values.size()) / std::pow(10.0, info(stats.metric).exp10);
  stats.min = unit(low);
  stats.max = unit(high);
  Ranks ranks(values, low, high);
  stats.p50 = unit(ranks.at(0.50));
  stats.p95 = unit(ranks.at(0.95));
}

// How far back a reading may look: NVML's power is an average over a second on recent parts, its utilisation one over
// a sixth of a second to a second (nvml.h).
Nanos looks_back(Metric metric) { return metric == Metric::kPower || metric == Metric::kMemoryUtil ? kSecond : 0; }

bool is_excluded(const MetricStats& stats, Nanos at) {
  return !stats.excluded.empty() &&
         std::binary_search(stats.excluded.begin(), stats.excluded.end(), ExcludedReading{.at = at},
                            [](const auto& x, const auto& y) { return x.at < y.at; });
}

}  // namespace

MetricStats excluded_readings(const Recording& recording, SourceId gpu, Metric metric, const Thresholds& limits) {
  MetricStats stats{metric};
  if (metric != Metric::kPower && metric != Metric::kPowerInstant) return stats;
  const Track& track = recording.tracks[static_cast<std::size_t>(gpu)];
  const Column* column = track.find(metric);
  if (!column) return stats;
  const auto limit = power_limit(recording, gpu);
  stats.excluded = limit ? above_limit(track, *column, *limit, limits[Threshold::kPowerOverLimit])
                         : hampel(readings(track, *column), limits);
  return stats;
}

std::optional<MetricStats> metric_stats(const Recording& recording, SourceId gpu, Metric metric, const Window& window,
                                        const Thresholds& limits) {
  const Track& track = recording.tracks[static_cast<std::size_t>(gpu)];
  const Column* column = track.find(metric);
  if (!column) return std::nullopt;
  MetricStats stats = excluded_readings(recording, gpu, metric, limits);
  std::erase_if(stats.excluded, [&](const ExcludedReading& reading) { return !window.holds(reading.at); });
  const auto rows_until = [&](Nanos at) {
    return static_cast<std::size_t>(std::upper_bound(track.at.begin(), track.at.end(), at) - track.at.begin());
  };
  const std::size_t first = rows_until(window.begin), last = std::max(first, rows_until(window.end));
  auto values = std::span(column->values).subspan(first, last - first);
  std::vector<std::int64_t> kept;
  if (!column->absent.empty() || !stats.excluded.empty()) {
    for (std::size_t row = first; row < last; ++row)
      if (column->has(row) && !is_excluded(stats, track.at[row])) kept.push_back(column->values[row]);
    values = kept;
  }
  if (values.empty()) {
    stats.absent = column->absent.empty() ? Absent::kNotSampled : static_cast<Absent>(column->absent.back());
    return stats;
  }
  summarise(stats, values);
  return stats;
}

std::vector<MetricStats> device_stats(const Recording& recording, SourceId gpu, const Window& window,
                                      const Thresholds& limits) {
  constexpr std::array kShown{
      Metric::kGpuUtil,      Metric::kMemoryUtil,  Metric::kMemoryUsed,     Metric::kPower,       Metric::kTemperature,
      Metric::kSmClock,      Metric::kMemoryClock, Metric::kGraphicsActive, Metric::kSmActive,    Metric::kSmOccupancy,
      Metric::kTensorActive, Metric::kDramActive,  Metric::kEncoderUtil,    Metric::kDecoderUtil, Metric::kFan,
      Metric::kPcieTxRate,   Metric::kPcieRxRate};
  std::vector<MetricStats> all;
  for (const Metric metric : kShown)
    if (auto stats = metric_stats(recording, gpu, metric, window, limits)) all.push_back(std::move(*stats));
  return all;
}

std::optional<double> mean_between(const Track& track, const MetricStats& stats, Nanos begin, Nanos end) {
  const Column* column = track.find(stats.metric);
  if (!column) return std::nullopt;
  begin += looks_back(stats.metric);
  double sum = 0;
  std::int64_t count = 0;
  auto row = static_cast<std::size_t>(std::upper_bound(track.at.begin(), track.at.end(), begin) - track.at.begin());
  for (; row < track.at.size() && track.at[row] <= end; ++row) {
    if (!column->has(row) || is_excluded(stats, track.at[row])) continue;
    sum += to_unit(stats.metric, column->values[row]);
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

}  // namespace headroom
