// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "analyze/named_phases.h"
#include "analyze/stats.h"
#include "analyze/utilisation.h"
#include "analyze/work.h"

// What the readings and the job's own counts say of each phase.
namespace headroom {

namespace {

std::optional<Nanos> period_of(const std::vector<Nanos>& begins, const Thresholds& limits) {
  if (begins.size() < 3) return std::nullopt;
  std::vector<Nanos> gaps;
  for (std::size_t i = 1; i < begins.size(); ++i) gaps.push_back(begins[i] - begins[i - 1]);
  const auto median = [](std::vector<Nanos>& values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
  };
  const Nanos middle = median(gaps);
  for (Nanos& gap : gaps) gap = std::abs(gap - middle);
  const double spread = limits[Threshold::kPeriodSpread] * static_cast<double>(middle);
  return static_cast<double>(median(gaps)) <= spread ? std::optional(middle) : std::nullopt;
}

struct KernelTime {
  Nanos total = 0, observed = 0, busy = 0;
  void add(const Slice& slice, Nanos length) {
    total += length;
    if (slice.account != Account::kUnobserved) observed += length;
    if (is_busy(slice.account)) busy += length;
  }
};

// How much of a slice lies in readings that lie in its phase as a whole: what such a one saw was in this phase.
Nanos in_whole_readings(const NamedPhases& named, const Slice& slice, const std::vector<UtilSample>& samples) {
  const NamedStretch* stretch = named.at(slice.pid, slice.begin).stretch;
  if (!stretch) return 0;
  Nanos sum = 0;
  const auto ends_after = [](Nanos at, const UtilSample& one) { return at < one.end; };
  for (auto sample = std::upper_bound(samples.begin(), samples.end(), slice.begin, ends_after);
       sample != samples.end() && sample->begin < slice.end; ++sample)
    if (sample->util && sample->begin >= stretch->begin && sample->end <= stretch->end)
      sum += std::min(slice.end, sample->end) - std::max(slice.begin, sample->begin);
  return sum;
}

// The share of kernels by `known`, a part of the time. Where that is too small a part, only that all readings saw none,
// or nothing else, is certain.
std::optional<double> share_of(const KernelTime& known, const KernelTime& all) {
  constexpr double kEnough = 0.25;
  const auto share = [](const KernelTime& time) {
    return static_cast<double>(time.busy) / static_cast<double>(time.observed);
  };
  if (all.observed == 0) return std::nullopt;
  if (static_cast<double>(known.observed) >= kEnough * static_cast<double>(all.observed)) return share(known);
  return all.busy == 0 || all.busy == all.observed ? std::optional(share(all)) : std::nullopt;
}

// The phases of one device: those in its ledger, and those that are too short for its readings.
class PhasesOfDevice {
 public:
  PhasesOfDevice(const Recording& recording, const NamedPhases& named, std::size_t index, DeviceTime& device,
                 const StepCounts& steps, const Thresholds& limits)
      : recording_(recording), named_(named), index_(index), device_(device), steps_(steps), limits_(limits) {
    const std::vector<UtilSample> samples = util_samples(recording, device.source, limits);
    for (const Slice& slice : device.slices) {
      if (const auto own = named.of_pid.find(slice.pid); own != named.of_pid.end())
        tracks_.insert(own->second.begin(), own->second.end());
      if (slice.named < 0) continue;
      all_[slice.named].add(slice, slice.end - slice.begin);
      whole_[slice.named].add(slice, in_whole_readings(named, slice, samples));
    }
  }

  // Appends them, and makes the slices name them.
  void describe(std::vector<Phase>& phases) const {
    if (tracks_.empty() || !named_.tells_of(device_)) return;
    std::vector<std::pair<Nanos, std::int32_t>> order;
    for (const auto& [name, time] : all_) order.emplace_back(-time.total, name);
    std::sort(order.begin(), order.end());
    std::map<std::int32_t, std::int32_t> place;
    for (const auto& [ns, name] : order) {
      place[name] = static_cast<std::int32_t>(phases.size());
      phases.push_back(in_the_ledger(name));
    }
    std::vector<Phase> finer = too_short_for_readings(place);
    phases.insert(phases.end(), std::make_move_iterator(finer.begin()), std::make_move_iterator(finer.end()));
    for (Slice& slice : device_.slices)
      if (slice.named >= 0) slice.named = place.at(slice.named);
  }

 private:
  // How long and how often, and when.
  [[nodiscard]] Phase said(std::int32_t name, const std::vector<PhaseTrack>& by, std::vector<Window>& times) const {
    const Window window{device_.slices.front().begin, device_.slices.back().end};
    Phase phase;
    phase.name = named_.names[static_cast<std::size_t>(name)];
    phase.device = index_;
    std::vector<Nanos> begins;
    for (const std::size_t track : tracks_) {
      std::int64_t last = 0;  // time that is counted
      for (const NamedStretch& stretch : by[track].stretches) {
        const Window time{std::max(stretch.begin, window.begin), std::min(stretch.end, window.end)};
        if (stretch.name != name || time.length() <= 0) continue;
        phase.named_by = by[track].via;
        times.push_back(time);
        phase.total += std::min(time.length(), INT64_MAX - phase.total);
        if (stretch.nth > 0 && stretch.nth == last) continue;  // it goes on after something else
        begins.push_back(stretch.begin);
        // Those that were too short for a row of their own began, too.
        phase.count += last > 0 && stretch.nth > last ? stretch.nth - last : 1;
        last = stretch.nth;
      }
    }
    std::sort(begins.begin(), begins.end());
    phase.period = period_of(begins, limits_);
    phase.steps = steps_.within(times);
    if (phase.steps) phase.steps_shared = steps_.shared(times);
    return phase;
  }

  // With what the readings say of it.
  [[nodiscard]] Phase in_the_ledger(std::int32_t name) const {
    std::vector<Window> times;
    Phase phase = said(name, named_.tracks, times);
    phase.total = all_.at(name).total;
    phase.gpu_util_ratio = share_of(exact_ ? all_.at(name) : whole_.at(name), all_.at(name));
    phase.power_watts = mean(power_, times);
    phase.memory_used_bytes = mean(used_, times);
    phase.memory_util_ratio = mean(util_, times);
    return phase;
  }

  [[nodiscard]] std::vector<Phase> too_short_for_readings(const std::map<std::int32_t, std::int32_t>& listed) const {
    std::vector<Phase> phases;
    std::set<std::int32_t> seen;
    for (const std::size_t track : tracks_)
      for (const NamedStretch& stretch : named_.fine[track].stretches) {
        if (listed.contains(stretch.name) || !seen.insert(stretch.name).second) continue;
        std::vector<Window> times;
        if (Phase phase = said(stretch.name, named_.fine, times); phase.count > 0) phases.push_back(std::move(phase));
      }
    std::stable_sort(phases.begin(), phases.end(), [](const Phase& x, const Phase& y) { return x.total > y.total; });
    return phases;
  }

  [[nodiscard]] MetricStats kept(Metric metric) const {
    return excluded_readings(recording_, device_.source, metric, limits_);
  }
  [[nodiscard]] std::optional<double> mean(const MetricStats& stats, const std::vector<Window>& times) const {
    const Track& readings = recording_.tracks[static_cast<std::size_t>(device_.source)];
    double sum = 0, weight = 0;
    for (const Window& time : times)
      if (const auto value = mean_between(readings, stats, time.begin, time.end)) {
        sum += *value * seconds(time.length());
        weight += seconds(time.length());
      }
    return weight > 0 ? std::optional(sum / weight) : std::nullopt;
  }

  const Recording& recording_;
  const NamedPhases& named_;
  std::size_t index_;
  DeviceTime& device_;
  const StepCounts& steps_;
  const Thresholds& limits_;
  const bool exact_ = !recording_.all(SourceKind::kGpuWork).empty();  // by a profiler
  const MetricStats power_ = kept(Metric::kPower), used_ = kept(Metric::kMemoryUsed), util_ = kept(Metric::kMemoryUtil);
  std::set<std::size_t> tracks_;
  std::map<std::int32_t, KernelTime> all_, whole_;  // by name; `whole`: in readings that lie in one stretch
};

}  // namespace

void describe_phases(const Recording& recording, const NamedPhases& named, std::vector<DeviceTime>& devices,
                     const Thresholds& limits, std::vector<Phase>& phases) {
  if (named.tracks.empty()) return;
  const StepCounts steps = step_counts(recording);
  for (std::size_t i = 0; i < devices.size(); ++i)
    PhasesOfDevice(recording, named, i, devices[i], steps, limits).describe(phases);
}

}  // namespace headroom
