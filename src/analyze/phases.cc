// SPDX-License-Identifier: Apache-2.0
#include "analyze/phases.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "analyze/stats.h"

namespace headroom {

namespace {

constexpr std::array<std::string_view, 3> kNames{"idle", "partly busy", "kernels running"};

constexpr int kUnseen = -1;  // the level of windows in which nobody looked

// Windows one after the other with one share of busy time; a negative share where they are mostly unobserved.
struct Share {
  std::size_t first, count;
  double busy;
};

// Over the slices. Windows within one that nobody observed are not gone through: it may be as long as a file claims.
std::vector<Share> busy_shares(const std::vector<Slice>& slices, Nanos window) {
  std::vector<Share> shares;
  std::size_t next = 0, number = 0;
  const Nanos last = slices.back().end;
  for (Nanos begin = slices.front().begin; begin < last;) {
    const Nanos end = std::min(begin + window, last);
    Nanos busy = 0, seen = 0;
    while (next < slices.size() && slices[next].end <= begin) ++next;
    if (const Slice& slice = slices[next]; slice.account == Account::kUnobserved && slice.end - begin >= window) {
      const Nanos windows = (slice.end - begin) / window;
      shares.push_back({number, static_cast<std::size_t>(windows), -1});
      number += shares.back().count;
      begin += windows * window;
      continue;
    }
    for (std::size_t i = next; i < slices.size() && slices[i].begin < end; ++i) {
      const Nanos ns = std::min(end, slices[i].end) - std::max(begin, slices[i].begin);
      if (slices[i].account != Account::kUnobserved) seen += ns;
      if (is_busy(slices[i].account)) busy += ns;
    }
    const bool observed = 2 * seen >= end - begin;
    shares.push_back({number++, 1, observed ? static_cast<double>(busy) / static_cast<double>(seen) : -1});
    begin = end;
  }
  return shares;
}

int level_of(double share, const Thresholds& limits) {
  return share < limits[Threshold::kPhaseIdleBelow] ? 0 : share >= limits[Threshold::kPhaseFullFrom] ? 2 : 1;
}

struct Run {
  std::size_t first, count;
  int level;
  double busy = 0;  // windows' shares, together
};

// Of a GPU that idles some readings are a little above what counts as idle: such runs and idle ones that are too short
// for a phase are one idle run together, where they are idle on average.
std::vector<Run> pooled(const std::vector<Run>& runs, const Thresholds& limits) {
  constexpr double kLittle = 3;  // times what counts as idle
  const auto is_bit = [&](const Run& run) {
    const auto windows = static_cast<double>(run.count);
    return run.level != kUnseen && windows < limits[Threshold::kPhaseWindows] &&
           run.busy < kLittle * limits[Threshold::kPhaseIdleBelow] * windows;
  };
  std::vector<Run> all;
  for (std::size_t i = 0, next = 0; i < runs.size(); i = next) {
    Run run = runs[i];
    for (next = i + 1; is_bit(runs[i]) && next < runs.size() && is_bit(runs[next]); ++next)
      run.count += runs[next].count, run.busy += runs[next].busy;
    run.level = next > i + 1 ? level_of(run.busy / static_cast<double>(run.count), limits) : run.level;
    if (next > i + 1 && run.level != 0)
      all.insert(all.end(), runs.begin() + static_cast<std::ptrdiff_t>(i),
                 runs.begin() + static_cast<std::ptrdiff_t>(next));
    else
      all.push_back(run);
  }
  return all;
}

// Runs of equal level; a run too short to be a phase joins the one before it, the first the one
// after it. Where nobody looked for as long as a
// phase takes, none is known.
std::vector<Run> runs_of(const std::vector<Share>& shares, const Thresholds& limits) {
  std::vector<Run> runs;
  for (const Share& share : shares) {
    const bool unseen = share.busy < 0 && static_cast<double>(share.count) >= limits[Threshold::kPhaseWindows];
    const bool goes_on = share.busy < 0 && !runs.empty();
    const int level = unseen ? kUnseen : goes_on ? runs.back().level : level_of(std::max(0.0, share.busy), limits);
    if (runs.empty() || runs.back().level != level)
      runs.push_back({share.first, share.count, level});
    else
      runs.back().count += share.count;
    runs.back().busy += std::max(0.0, share.busy) * static_cast<double>(share.count);
  }
  std::vector<Run> joined;
  for (const Run& run : pooled(runs, limits)) {
    const bool is_short = static_cast<double>(run.count) < limits[Threshold::kPhaseWindows];
    const bool join = !joined.empty() && (joined.back().level == run.level ||
                                          (is_short && run.level != kUnseen && joined.back().level != kUnseen));
    if (join)
      joined.back().count += run.count;
    else
      joined.push_back(run);
  }
  if (joined.size() > 1 && static_cast<double>(joined[0].count) < limits[Threshold::kPhaseWindows] &&
      joined[0].level != kUnseen && joined[1].level != kUnseen) {
    joined[1].count += joined[0].count;
    joined[1].first = joined[0].first;
    joined.erase(joined.begin());
  }
  return joined;
}

std::optional<Nanos> period_of(const std::vector<Stretch>& list, int level, const Thresholds& limits) {
  std::vector<Nanos> gaps;
  Nanos last = -1;
  for (const Stretch& stretch : list) {
    if (stretch.level == kUnseen) last = -1;
    if (stretch.level != level) continue;
    if (last >= 0) gaps.push_back(stretch.begin - last);
    last = stretch.begin;
  }
  if (gaps.empty()) return std::nullopt;
  std::sort(gaps.begin(), gaps.end());
  const Nanos middle = gaps[gaps.size() / 2];
  std::vector<Nanos> off;
  for (const Nanos gap : gaps) off.push_back(std::abs(gap - middle));
  std::sort(off.begin(), off.end());
  const double spread = limits[Threshold::kPeriodSpread] * static_cast<double>(middle);
  if (static_cast<double>(off[off.size() / 2]) > spread) return std::nullopt;
  return middle;
}

// Does the busiest level come back? A rise and a fall alone are the ends of the work, not a pattern.
bool recurs(const std::vector<Stretch>& list) {
  int highest = 0, times = 0, before = kUnseen;
  for (const Stretch& stretch : list) highest = std::max(highest, stretch.level);
  for (const Stretch& stretch : list) {
    if (stretch.level == kUnseen) continue;  // and what follows goes on with what was before
    times += stretch.level == highest && before != highest ? 1 : 0;
    before = stretch.level;
  }
  return highest > 0 && times > 1;
}

// What a phase is described by, beside its utilisation; with the readings that are left out.
struct Trusted {
  MetricStats power, memory_used, memory_util;
};

Trusted trusted(const Recording& recording, SourceId gpu, const Thresholds& limits) {
  const auto kept = [&](Metric metric) { return excluded_readings(recording, gpu, metric, limits); };
  return {kept(Metric::kPower), kept(Metric::kMemoryUsed), kept(Metric::kMemoryUtil)};
}

Phase describe(const Track& track, const Trusted& readings, const std::vector<Stretch>& list, int level,
               const Thresholds& limits) {
  Phase phase;
  phase.name = kNames[static_cast<std::size_t>(level)];
  phase.period = period_of(list, level, limits);
  const auto mean = [&](const MetricStats& stats) -> std::optional<double> {
    double sum = 0, weight = 0;
    for (const Stretch& stretch : list) {
      if (stretch.level != level) continue;
      const auto value = mean_between(track, stats, stretch.begin, stretch.end);
      if (!value) continue;
      sum += *value * seconds(stretch.end - stretch.begin);
      weight += seconds(stretch.end - stretch.begin);
    }
    return weight > 0 ? std::optional(sum / weight) : std::nullopt;
  };
  for (const Stretch& stretch : list)
    if (stretch.level == level) {
      ++phase.count;
      phase.total += stretch.end - stretch.begin;
    }
  // Where the middle of them is regular and a few are far longer, the whole is not.
  if (phase.period && phase.count > 0 && phase.total / phase.count >= *phase.period) phase.period.reset();
  phase.power_watts = mean(readings.power);
  phase.memory_used_bytes = mean(readings.memory_used);
  phase.memory_util_ratio = mean(readings.memory_util);
  return phase;
}

// Cuts the slices at the stretches' borders and marks each part; returns the busy time of each level. `marked` is room
// that is kept from device to device.
std::array<Nanos, 3> mark(std::vector<Slice>& slices, const std::vector<Stretch>& list,
                          const std::array<std::int32_t, 3>& phase_of_level, std::vector<Slice>& marked) {
  std::array<Nanos, 3> busy{};
  marked.clear();
  marked.reserve(slices.size() + list.size());
  std::size_t next = 0;
  for (Slice slice : slices) {
    while (slice.begin < slice.end) {
      while (next + 1 < list.size() && list[next].end <= slice.begin) ++next;
      Slice part = slice;
      if (next + 1 < list.size()) part.end = std::min(part.end, list[next].end);
      if (list[next].level != kUnseen) {
        const auto level = static_cast<std::size_t>(list[next].level);
        part.phase = phase_of_level[level];
        if (is_busy(part.account)) busy[level] += part.end - part.begin;
      }
      marked.push_back(part);
      slice.begin = part.end;
    }
  }
  std::swap(slices, marked);
  return busy;
}

}  // namespace

std::vector<Stretch> stretches(const std::vector<Slice>& slices, Nanos window, const Thresholds& limits) {
  if (slices.empty() || window <= 0) return {};
  const auto shares = busy_shares(slices, window);
  const auto runs = runs_of(shares, limits);
  const double phases = static_cast<double>(runs.size());
  const double windows = static_cast<double>(shares.back().first + shares.back().count);
  if (runs.size() < 2 || phases * limits[Threshold::kPhaseFlicker] > windows) return {};
  std::vector<Stretch> list;
  for (const Run& run : runs) {
    const Nanos begin = slices.front().begin + static_cast<Nanos>(run.first) * window;
    list.push_back({begin, std::min(begin + static_cast<Nanos>(run.count) * window, slices.back().end), run.level});
  }
  return list;
}

std::vector<Phase> find_phases(const Recording& recording, std::vector<DeviceTime>& devices, const Thresholds& limits) {
  std::vector<Phase> phases;
  std::vector<Slice> marked;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    Nanos window = limits.time(Threshold::kPhaseWindow);
    // The driver's ring is as fine as that, however rarely it is drained.
    const std::string& key = recording.sources[static_cast<std::size_t>(devices[i].source)].key;
    if (!recording.find(SourceKind::kGpuUtilRing, key)) window = std::max(window, recording.meta.interval);
    constexpr Nanos kMostWindows = 1 << 20;  // of a recording of 12 days; of a longer one they are longer
    window = std::max(window, recording.meta.end / kMostWindows - recording.meta.start / kMostWindows);
    const auto list = stretches(devices[i].slices, window, limits);
    if (!recurs(list)) continue;
    std::array<std::int32_t, 3> phase_of_level{-1, -1, -1};
    const std::size_t first = phases.size();
    const SourceId gpu = devices[i].source;
    const Trusted readings = trusted(recording, gpu, limits);
    for (const int level : {2, 1, 0}) {
      Phase phase = describe(recording.tracks[static_cast<std::size_t>(gpu)], readings, list, level, limits);
      if (phase.count == 0) continue;
      phase.device = i;
      phase_of_level[static_cast<std::size_t>(level)] = static_cast<std::int32_t>(phases.size());
      phases.push_back(phase);
    }
    const auto busy = mark(devices[i].slices, list, phase_of_level, marked);
    for (std::size_t level = 0; level < busy.size(); ++level)
      if (phase_of_level[level] >= 0) {
        Phase& phase = phases[static_cast<std::size_t>(phase_of_level[level])];
        phase.gpu_util_ratio = static_cast<double>(busy[level]) / static_cast<double>(std::max<Nanos>(1, phase.total));
      }
    const auto begin = phases.begin() + static_cast<std::ptrdiff_t>(first);
    const auto [least, most] = std::minmax_element(
        begin, phases.end(), [](const Phase& x, const Phase& y) { return x.gpu_util_ratio < y.gpu_util_ratio; });
    if (*most->gpu_util_ratio - *least->gpu_util_ratio >= limits[Threshold::kPhaseContrast]) continue;
    phases.erase(begin, phases.end());  // a level that was crossed by little is no change of what is done
    for (Slice& slice : devices[i].slices) slice.phase = -1;
  }
  return phases;
}

}  // namespace headroom
