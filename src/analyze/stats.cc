// SPDX-License-Identifier: Apache-2.0
#include "analyze/stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/entities.h"

namespace headroom {

namespace {

constexpr double kOverLimit = 1.25;  // a 1 s average above this multiple of the enforced limit is no power draw
constexpr double kHampel = 10;       // scaled deviations from the median
constexpr std::size_t kRareOneIn = 50;
constexpr double kMadToSigma = 1.4826;  // of a normal distribution

struct Value {
  Nanos at;
  double value;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<Value> readings(const Track& track, const Column& column) {
  std::vector<Value> values;
  values.reserve(column.values.size());
  for (std::size_t row = 0; row < column.values.size(); ++row)
    if (column.has(row)) values.push_back({track.at[row], to_unit(column.metric, column.values[row])});
  return values;
}

std::vector<ExcludedReading> above_limit(const std::vector<Value>& values, double limit) {
  std::vector<ExcludedReading> excluded;
  for (const auto& [at, value] : values)
    if (value > kOverLimit * limit)
      excluded.push_back({at, value, fmt::format("above the enforced limit of {:g} W", limit)});
  return excluded;
}

std::vector<ExcludedReading> hampel(const std::vector<Value>& values) {
  if (values.size() < 20) return {};
  std::vector<double> plain, deviations;
  for (const auto& v : values) plain.push_back(v.value);
  const double middle = median(plain);
  for (const double v : plain) deviations.push_back(std::abs(v - middle));
  const double sigma = std::max(kMadToSigma * median(deviations), 0.01 * std::abs(middle));
  std::vector<ExcludedReading> excluded;
  double furthest_kept = 0;
  for (const auto& [at, value] : values) {
    const double score = (value - middle) / std::max(sigma, 1e-9);
    if (score > kHampel)
      excluded.push_back(
          {at, value,
           fmt::format("Hampel identifier: {:.0f} scaled deviations above the median {:.1f} W", score, middle)});
    else
      furthest_kept = std::max(furthest_kept, value);
  }
  const bool rare = excluded.size() * kRareOneIn <= values.size();
  const bool alone =
      std::all_of(excluded.begin(), excluded.end(), [&](const auto& e) { return e.value > 2 * furthest_kept; });
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

void summarise(MetricStats& stats, std::vector<double>& sorted) {
  std::sort(sorted.begin(), sorted.end());
  const auto rank = [&](double q) {
    const auto index = static_cast<std::size_t>(std::ceil(q * static_cast<double>(sorted.size())));
    return sorted[std::clamp<std::size_t>(index, 1, sorted.size()) - 1];
  };
  double sum = 0;
  for (const double value : sorted) sum += value;
  stats.samples = static_cast<std::int64_t>(sorted.size());
  stats.mean = sum / static_cast<double>(sorted.size());
  stats.min = sorted.front();
  stats.max = sorted.back();
  stats.p50 = rank(0.50);
  stats.p95 = rank(0.95);
}

bool is_excluded(const MetricStats& stats, Nanos at) {
  return std::any_of(stats.excluded.begin(), stats.excluded.end(), [&](const auto& e) { return e.at == at; });
}

}  // namespace

std::optional<MetricStats> metric_stats(const Recording& recording, SourceId gpu, Metric metric) {
  const Track& track = recording.tracks[static_cast<std::size_t>(gpu)];
  const Column* column = track.find(metric);
  if (!column) return std::nullopt;
  MetricStats stats{metric};
  const auto values = readings(track, *column);
  if (metric == Metric::kPower || metric == Metric::kPowerInstant) {
    const auto limit = power_limit(recording, gpu);
    stats.excluded = limit ? above_limit(values, *limit) : hampel(values);
    if (stats.excluded.size() == values.size()) stats.excluded.clear();  // then the limit is what is wrong
  }
  std::vector<double> kept;
  kept.reserve(values.size());
  for (const auto& [at, value] : values)
    if (!is_excluded(stats, at)) kept.push_back(value);
  if (kept.empty()) {
    stats.absent = column->absent.empty() ? Absent::kNotSampled : static_cast<Absent>(column->absent.back());
    return stats;
  }
  summarise(stats, kept);
  return stats;
}

std::vector<MetricStats> device_stats(const Recording& recording, SourceId gpu) {
  constexpr std::array kShown{Metric::kGpuUtil,     Metric::kMemoryUtil,   Metric::kMemoryUsed,  Metric::kPower,
                              Metric::kTemperature, Metric::kSmClock,      Metric::kMemoryClock, Metric::kSmActive,
                              Metric::kSmOccupancy, Metric::kTensorActive, Metric::kDramActive,  Metric::kEncoderUtil,
                              Metric::kDecoderUtil, Metric::kFan,          Metric::kPcieTxRate,  Metric::kPcieRxRate};
  std::vector<MetricStats> all;
  for (const Metric metric : kShown)
    if (auto stats = metric_stats(recording, gpu, metric)) all.push_back(std::move(*stats));
  return all;
}

std::optional<double> mean_between(const Track& track, const MetricStats& stats, Nanos begin, Nanos end) {
  const Column* column = track.find(stats.metric);
  if (!column) return std::nullopt;
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
