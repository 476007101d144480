// SPDX-License-Identifier: Apache-2.0
#include "view/view.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "analyze/attempts.h"
#include "model/parts.h"
#include "view/processes.h"

namespace headroom::view {

namespace {

// Not of several recordings: batches of their own number their tasks each.
std::vector<Run> runs_of(const Recording& recording, const Ledger& ledger, const GpuSources& gpus) {
  std::vector<Run> runs;
  if (has_parts(recording)) return runs;
  const BatchView batch = batch_view(recording);
  for (const TaskAttempt& attempt : batch.attempts) {
    if (attempt.begin >= ledger.end || attempt.end <= ledger.begin) continue;
    Run run;
    run.task = batch.tasks[static_cast<std::size_t>(attempt.task)];
    run.attempt = attempt.id;
    run.pid = attempt.pid;
    run.begin = attempt.begin;
    if (attempt.outcome) run.end = attempt.end;
    run.outcome = attempt.outcome;
    run.reason = attempt.reason;
    run.running = attempt.running;
    run.peak_gpu_bytes = attempt.peak_gpu_bytes;
    for (const SourceId device : attempt.devices)
      if (const auto position = position_of(gpus, device)) run.gpus.push_back(*position);
    runs.push_back(std::move(run));
  }
  return runs;
}

constexpr std::size_t kMostLanes = 64;

class Lanes {
 public:
  explicit Lanes(Nanos least) : least_(least) {}

  // False: all lanes are taken.
  bool add(Bar bar) {
    for (std::size_t lane = 0; lane < kMostLanes; ++lane) {
      if (lane == lanes_.size()) lanes_.emplace_back();
      std::vector<Bar>& bars = lanes_[lane];
      if (!bars.empty() && bars.back().end > bar.begin) continue;
      bar.lane = lane;
      if (!bars.empty() && joins(bars.back(), bar)) {
        bars.back().end = bar.end;
        ++bars.back().count;
      } else {
        bars.push_back(bar);
      }
      return true;
    }
    return false;
  }

  void put(Gpu& gpu) {
    gpu.lanes = lanes_.size();
    gpu.bars.clear();
    for (const std::vector<Bar>& bars : lanes_) gpu.bars.insert(gpu.bars.end(), bars.begin(), bars.end());
  }

 private:
  [[nodiscard]] bool joins(const Bar& last, const Bar& bar) const {
    const auto is_short = [&](const Bar& one) { return one.count > 1 || one.end - one.begin < least_; };
    return last.ending == bar.ending && is_short(last) && is_short(bar) && bar.begin - last.end < least_;
  }

  Nanos least_;
  std::vector<std::vector<Bar>> lanes_;
};

void add_bars_of(const View& view, std::size_t position, Nanos least, Gpu& gpu) {
  Lanes lanes(least);
  gpu.runs_left_out = 0;
  for (std::size_t i = 0; i < view.runs.size(); ++i) {
    const Run& run = view.runs[i];
    if (std::find(run.gpus.begin(), run.gpus.end(), position) == run.gpus.end()) continue;
    Bar bar;
    bar.begin = std::max(view.begin, run.begin);
    bar.end = std::min(view.end, run.end.value_or(view.end));
    bar.run = i;
    bar.ending = run.ending();
    if (!lanes.add(bar)) ++gpu.runs_left_out;
  }
  lanes.put(gpu);
}

// The boxes of runs. Neighbours shorter than `least` may share one, and longer ones while there are more than `most`.
void add_bars(View& view, Nanos least, std::size_t most) {
  for (;; least *= 2) {
    std::size_t bars = 0;
    for (std::size_t position = 0; position < view.gpus.size(); ++position) {
      add_bars_of(view, position, least, view.gpus[position]);
      bars += view.gpus[position].bars.size();
    }
    if (bars <= most || least <= 0 || least > view.end - view.begin) return;
  }
}

constexpr std::array kDrawn{Metric::kGpuUtil, Metric::kMemoryUsed, Metric::kPower, Metric::kTemperature};
constexpr int kSpeaksForIntervals = 3;

std::optional<double> whole_of(Metric metric, const Device& device) {
  if (metric == Metric::kGpuUtil) return 1.0;
  if (metric == Metric::kPower) return device.power_limit_watts;
  if (metric == Metric::kMemoryUsed && device.memory_total_bytes)
    return static_cast<double>(*device.memory_total_bytes);
  return std::nullopt;
}

// The driver's ring buffers are finer than its current value, which is read now and then.
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

// The rate of a counter; nothing where it went back.
std::optional<double> last_pace(const Track& track, Metric metric, const View& view) {
  const Column* column = track.find(metric);
  const auto rows = column ? last_rows(track, *column, view, 2) : std::vector<std::size_t>();
  if (rows.size() < 2 || column->values[rows[0]] < column->values[rows[1]]) return std::nullopt;
  const Nanos span = track.at[rows[0]] - track.at[rows[1]];
  const double more = to_unit(metric, column->values[rows[0]]) - to_unit(metric, column->values[rows[1]]);
  return span > 0 ? std::optional(more / seconds(span)) : std::nullopt;
}

// Sets what is told of the last readings alone.
void add_last_readings(const Track& track, const View& view, Gpu& gpu) {
  const auto either = [](std::optional<double> one, std::optional<double> other) { return one ? one : other; };
  gpu.sm_clock_mhz = last_of(track, Metric::kSmClock, view);
  gpu.fan = last_of(track, Metric::kFan, view);
  gpu.pcie_sent = either(last_of(track, Metric::kPcieTxRate, view), last_pace(track, Metric::kPcieTx, view));
  gpu.pcie_received = either(last_of(track, Metric::kPcieRxRate, view), last_pace(track, Metric::kPcieRx, view));
}

std::vector<Series> series_of(const Recording& recording, const Explanation& explanation, std::size_t device,
                              const std::vector<SourceId>& gpus, std::size_t bins) {
  std::vector<Series> all;
  const Ledger& ledger = explanation.ledger;
  if (gpus.empty() || ledger.end <= ledger.begin || bins == 0) return all;
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
    for (const SourceId gpu : gpus) {
      add(gpu);
      if (const auto ring = ring_of(metric))
        for (const SourceId source : recording.all(*ring))
          if (recording.sources[static_cast<std::size_t>(source)].parent == gpu) add(source);
    }
    if (series.last) all.push_back(std::move(series));
  }
  return all;
}

// The kGpu sources of the ledger's devices; none where the recording has none of that name, several where recordings of
// one GPU were joined.
GpuSources gpu_sources(const Recording& recording, const Ledger& ledger) {
  std::map<std::pair<std::string, std::string>, std::vector<SourceId>> known;
  for (const SourceId id : recording.all(SourceKind::kGpu)) {
    Device device = device_of(recording.sources[static_cast<std::size_t>(id)]);
    known[{std::move(device.host), std::move(device.uuid)}].push_back(id);
  }
  GpuSources sources;
  for (const Device& device : ledger.devices) sources.push_back(known[{device.host, device.uuid}]);
  return sources;
}

void longest_first(std::vector<Marks>& marks) {
  std::stable_sort(marks.begin(), marks.end(), [](const Marks& a, const Marks& b) { return a.ns > b.ns; });
}

std::vector<Marks> phases_of(const std::vector<Slice>& slices, Nanos gap) {
  std::map<std::int32_t, Spans> spans;
  for (const Slice& slice : slices)
    if (slice.phase >= 0) spans.try_emplace(slice.phase, gap).first->second.add(slice.begin, slice.end);
  std::vector<Marks> marks;
  for (auto& [phase, of_phase] : spans)
    marks.push_back({static_cast<std::size_t>(phase), of_phase.ns(), std::move(of_phase).take()});
  longest_first(marks);
  return marks;
}

std::vector<Marks> findings_of(const std::vector<Finding>& findings, std::size_t device, Nanos gap) {
  std::vector<Marks> marks;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    Spans spans(gap);
    for (const ClaimedPiece& piece : findings[i].claims)
      if (piece.device == device) spans.add(piece.begin, piece.end);
    if (spans.ns() > 0) marks.push_back({i, spans.ns(), std::move(spans).take()});
  }
  longest_first(marks);
  return marks;
}

std::vector<Share> all_of(const Ledger& ledger) {
  std::vector<Share> shares;
  for (const AccountInfo& account : kAccounts)
    if (const Nanos ns = ledger.total(account.id); ns > 0) shares.push_back({account.id, ns});
  return shares;
}

}  // namespace

Ending Run::ending() const {
  if (running) return Ending::kRunning;
  return outcome == AttemptOutcome::kSucceeded ? Ending::kSucceeded : Ending::kOtherwise;
}

View view_of(const Recording& recording, const Explanation& explanation, const Options& options) {
  const Ledger& ledger = explanation.ledger;
  View view;
  view.begin = ledger.begin;
  view.end = ledger.end;
  view.goes_on = goes_on(recording.meta);
  view.ledger = all_of(ledger);
  const GpuSources gpus = gpu_sources(recording, ledger);
  view.runs = runs_of(recording, ledger, gpus);
  const Nanos bin = ledger.span() / static_cast<Nanos>(std::max<std::size_t>(1, options.bins));
  for (std::size_t device = 0; device < ledger.devices.size(); ++device) {
    const std::vector<Slice>& slices = explanation.slices[device];
    Gpu gpu;
    gpu.ledger = sum_of(slices);
    gpu.strip = strip_of(slices, ledger.begin, ledger.end, options.bins);
    gpu.series = series_of(recording, explanation, device, gpus[device], options.series_bins);
    if (!gpus[device].empty()) add_last_readings(track_of(recording, gpus[device].back()), view, gpu);
    gpu.phases = phases_of(slices, bin);
    gpu.findings = findings_of(explanation.findings, device, bin);
    view.gpus.push_back(std::move(gpu));
  }
  add_bars(view, bin, options.most_bars);
  add_processes(recording, explanation, gpus, options.most_processes, view);
  return view;
}

}  // namespace headroom::view
