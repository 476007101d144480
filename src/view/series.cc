// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <set>

#include "view/parts.h"

namespace headroom::view {

namespace {

constexpr std::array kDrawn{Metric::kGpuUtil, Metric::kMemoryUsed, Metric::kPower, Metric::kTemperature};
constexpr int kSpeaksForIntervals = 3;

std::optional<double> whole_of(Metric metric, const Device& device) {
  if (metric == Metric::kGpuUtil) return 1.0;
  if (metric == Metric::kPower) return device.power_limit_watts;
  if (metric == Metric::kMemoryUsed && device.memory_total_bytes)
    return static_cast<double>(*device.memory_total_bytes);
  return std::nullopt;
}

// What the driver keeps in a ring buffer is finer than what is read of it now and then.
std::optional<SourceKind> ring_of(Metric metric) {
  if (metric == Metric::kGpuUtil) return SourceKind::kGpuUtilRing;
  if (metric == Metric::kPower) return SourceKind::kGpuPowerRing;
  return std::nullopt;
}

std::set<Nanos> excluded_readings(const Explanation& explanation, std::size_t device, Metric metric) {
  std::set<Nanos> at;
  for (const DeviceStats& stats : explanation.devices)
    if (stats.device == device)
      for (const MetricStats& one : stats.metrics)
        if (one.metric == metric)
          for (const ExcludedReading& reading : one.excluded) at.insert(reading.at);
  return at;
}

class Collector {
 public:
  Collector(Series& series, Nanos begin, Nanos end, std::size_t bins, Nanos reach)
      : series_(series), begin_(begin), end_(end), reach_(reach) {
    series_.bins.resize(bins);
  }

  void add(const Track& track, const Column& column, const std::set<Nanos>& excluded) {
    Nanos before = begin_;
    auto row = static_cast<std::size_t>(std::lower_bound(track.at.begin(), track.at.end(), begin_) - track.at.begin());
    for (; row < track.at.size() && track.at[row] <= end_; ++row) {
      const Nanos at = track.at[row];
      if (column.has(row) && !excluded.contains(at)) reading(std::max(before, at - reach_), at, column.values[row]);
      before = at;
    }
  }

 private:
  // A reading speaks for (from, at].
  void reading(Nanos from, Nanos at, std::int64_t stored) {
    const double value = to_unit(series_.metric, stored);
    if (at >= last_) {
      last_ = at;
      series_.last = value;
    }
    const std::size_t n = series_.bins.size();
    const Nanos inside = std::max(begin_, std::min(at, end_) - 1);
    const std::size_t to = bin_of(begin_, end_, n, inside);
    for (std::size_t bin = bin_of(begin_, end_, n, std::clamp(from, begin_, inside)); bin <= to; ++bin) {
      Range& range = series_.bins[bin];
      const auto drawn = static_cast<float>(value);
      range.low = range.samples == 0 ? drawn : std::min(range.low, drawn);
      range.high = range.samples == 0 ? drawn : std::max(range.high, drawn);
      ++range.samples;
    }
  }

  Series& series_;
  Nanos begin_, end_, reach_;
  Nanos last_ = INT64_MIN;
};

// The rows of the view in which the metric was read, the last first, `most` at most.
std::vector<std::size_t> last_rows(const Track& track, const Column& column, const View& view, std::size_t most) {
  std::vector<std::size_t> rows;
  auto row = static_cast<std::size_t>(std::upper_bound(track.at.begin(), track.at.end(), view.end) - track.at.begin());
  while (row-- > 0 && track.at[row] >= view.begin && rows.size() < most)
    if (column.has(row)) rows.push_back(row);
  return rows;
}

std::optional<double> last_of(const Track& track, Metric metric, const View& view) {
  const Column* column = track.find(metric);
  const auto rows = column ? last_rows(track, *column, view, 1) : std::vector<std::size_t>();
  return rows.empty() ? std::nullopt : std::optional(to_unit(metric, column->values[rows[0]]));
}

// Of a counter; nothing where it went back.
std::optional<double> last_pace(const Track& track, Metric metric, const View& view) {
  const Column* column = track.find(metric);
  const auto rows = column ? last_rows(track, *column, view, 2) : std::vector<std::size_t>();
  if (rows.size() < 2 || column->values[rows[0]] < column->values[rows[1]]) return std::nullopt;
  const Nanos span = track.at[rows[0]] - track.at[rows[1]];
  const double more = to_unit(metric, column->values[rows[0]]) - to_unit(metric, column->values[rows[1]]);
  return span > 0 ? std::optional(more / seconds(span)) : std::nullopt;
}

}  // namespace

void add_last_readings(const Track& track, const View& view, Gpu& gpu) {
  const auto either = [](std::optional<double> one, std::optional<double> other) { return one ? one : other; };
  gpu.sm_clock_mhz = last_of(track, Metric::kSmClock, view);
  gpu.fan = last_of(track, Metric::kFan, view);
  gpu.pcie_sent = either(last_of(track, Metric::kPcieTxRate, view), last_pace(track, Metric::kPcieTx, view));
  gpu.pcie_received = either(last_of(track, Metric::kPcieRxRate, view), last_pace(track, Metric::kPcieRx, view));
}

std::vector<Series> series_of(const Recording& recording, const Explanation& explanation, std::size_t device,
                              SourceId gpu, std::size_t bins) {
  std::vector<Series> all;
  const Ledger& ledger = explanation.ledger;
  if (gpu == kNoSource || ledger.end <= ledger.begin || bins == 0) return all;
  const Nanos interval = recording.meta.interval > 0 ? recording.meta.interval : kSecond;
  for (const Metric metric : kDrawn) {
    Series series;
    series.metric = metric;
    series.whole = whole_of(metric, ledger.devices[device]);
    Collector collector(series, ledger.begin, ledger.end, bins, kSpeaksForIntervals * interval);
    const std::set<Nanos> excluded = excluded_readings(explanation, device, metric);
    const auto add = [&](SourceId source) {
      const Track& track = recording.tracks[static_cast<std::size_t>(source)];
      if (const Column* column = track.find(metric)) collector.add(track, *column, excluded);
    };
    add(gpu);
    if (const auto ring = ring_of(metric))
      for (const SourceId source : recording.all(*ring))
        if (recording.sources[static_cast<std::size_t>(source)].parent == gpu) add(source);
    if (series.last) all.push_back(std::move(series));
  }
  return all;
}

}  // namespace headroom::view
