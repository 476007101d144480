// SPDX-License-Identifier: Apache-2.0
#include "analyze/phases.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <queue>
#include <string_view>
#include <tuple>
#include <utility>

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

// Neighbouring windows; `busy` and `squares` are sums over their shares, `idle` counts those that are idle.
struct Run {
  std::size_t first, count;
  double busy = 0, squares = 0;
  std::size_t idle = 0;
  bool unseen = false;

  [[nodiscard]] double mean() const { return busy / static_cast<double>(count); }
  void take(const Run& next) { count += next.count, busy += next.busy, squares += next.squares, idle += next.idle; }
};

// By how much the squared distances from the means grow if both have one mean (Ward 1963).
double cost_of_joining(const Run& one, const Run& other) {
  const auto n = static_cast<double>(one.count), m = static_cast<double>(other.count);
  const double apart = one.mean() - other.mean();
  return n * m / (n + m) * apart * apart;
}

constexpr double kLittle = 3;  // times what counts as idle: hardly anything

// The level of one window, of which what is hardly busy is one of its own: a wait in which a desktop draws is no part
// of the work beside it, though neither is idle nor full.
int fine_level_of(double share, const Thresholds& limits) {
  constexpr int kHardlyBusy = 3;
  const int level = level_of(share, limits);
  return level == 1 && share < kLittle * limits[Threshold::kPhaseIdleBelow] ? kHardlyBusy : level;
}

// Windows of equal level. Where nobody looked for as long as a phase takes, none is known; for less, what was goes on.
std::vector<Run> runs_of_one_level(const std::vector<Share>& shares, const Thresholds& limits) {
  std::vector<Run> runs;
  int before = kUnseen;
  for (const Share& share : shares) {
    const bool seen = share.busy >= 0;
    const bool unseen = !seen && static_cast<double>(share.count) >= limits[Threshold::kPhaseWindows];
    const bool goes_on = !seen && !unseen && !runs.empty() && !runs.back().unseen;
    const double busy = goes_on ? runs.back().mean() : std::max(0.0, share.busy);
    const int level = unseen ? kUnseen : goes_on ? before : fine_level_of(busy, limits);
    const auto count = static_cast<double>(share.count);
    const Run next{share.first, share.count, busy * count, busy * busy * count, level == 0 ? share.count : 0, unseen};
    if (runs.empty() || runs.back().unseen != unseen || before != level)
      runs.push_back(next);
    else
      runs.back().take(next);
    before = level;
  }
  return runs;
}

// Bottom-up segmentation (Keogh et al. 2001): of all neighbours that `may_join` the two whose joining costs least
// become one, until none may.
template <class MayJoin>
std::vector<Run> joined(std::vector<Run> runs, const MayJoin& may_join) {
  struct Pair {
    double cost;
    std::size_t left, right;  // as they were when this was noted: sizes tell whether they are still
    std::size_t of_left, of_right;
    bool operator>(const Pair& other) const { return std::tie(cost, left) > std::tie(other.cost, other.left); }
  };
  std::priority_queue<Pair, std::vector<Pair>, std::greater<>> pairs;
  std::vector<std::size_t> before(runs.size()), after(runs.size());
  const auto note = [&](std::size_t left, std::size_t right) {
    if (right >= runs.size() || runs[left].unseen || runs[right].unseen || !may_join(runs[left], runs[right])) return;
    pairs.push({cost_of_joining(runs[left], runs[right]), left, right, runs[left].count, runs[right].count});
  };
  for (std::size_t i = 0; i < runs.size(); ++i) before[i] = i == 0 ? runs.size() : i - 1, after[i] = i + 1;
  for (std::size_t i = 0; i + 1 < runs.size(); ++i) note(i, i + 1);
  while (!pairs.empty()) {
    const Pair pair = pairs.top();
    pairs.pop();
    Run &left = runs[pair.left], &right = runs[pair.right];
    if (left.count != pair.of_left || right.count != pair.of_right) continue;  // joined to another since
    left.take(right);
    right.count = 0;
    after[pair.left] = after[pair.right];
    if (after[pair.left] < runs.size()) before[after[pair.left]] = pair.left;
    if (before[pair.left] < runs.size()) note(before[pair.left], pair.left);
    note(pair.left, after[pair.left]);
  }
  std::erase_if(runs, [](const Run& run) { return run.count == 0; });
  return runs;
}

// Runs that differ as phases do: each as long as one, and further apart from its neighbours than what is crossed by
// little, and than chance makes of what varies within them: the penalty of Yao 1988 for each change, several times, as
// readings come in bursts.
std::vector<Run> runs_of(const std::vector<Share>& shares, const Thresholds& limits) {
  constexpr double kPenalty = 6;  // times the variance within, times the logarithm of the number of windows
  const auto is_short = [&](const Run& run) {
    return static_cast<double>(run.count) < limits[Threshold::kPhaseWindows];
  };
  std::vector<Run> runs = joined(runs_of_one_level(shares, limits),
                                 [&](const Run& one, const Run& other) { return is_short(one) || is_short(other); });
  double windows = 0, within = 0;
  for (const Run& run : runs) {
    if (run.unseen) continue;
    windows += static_cast<double>(run.count);
    within += std::max(0.0, run.squares - run.busy * run.mean());
  }
  const double chance = windows > 1 ? kPenalty * within / windows * std::log(windows) : 0;
  return joined(std::move(runs), [&](const Run& one, const Run& other) {
    return cost_of_joining(one, other) < chance ||
           std::abs(one.mean() - other.mean()) < limits[Threshold::kPhaseContrast];
  });
}

// Of a GPU that idles some readings are a little above what counts as idle, and a few may be of something else; or all
// of them are a little above it, as where a desktop draws, and hardly anything beside what it has at other times.
int level_of(const Run& run, double busiest, const Thresholds& limits) {
  constexpr double kOfADesktop = 0.09, kHardly = 0.15;  // of the time; of the busiest
  if (run.unseen) return kUnseen;
  const bool mostly_idle = 2 * run.idle > run.count && run.mean() < kLittle * limits[Threshold::kPhaseIdleBelow];
  const bool just_above = run.mean() < kOfADesktop && run.mean() < kHardly * busiest;
  return mostly_idle || just_above ? 0 : level_of(run.mean(), limits);
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
  double busiest = 0;
  for (const Run& run : runs)
    if (!run.unseen) busiest = std::max(busiest, run.mean());
  std::vector<Stretch> list;
  for (const Run& run : runs) {
    const Nanos begin = slices.front().begin + static_cast<Nanos>(run.first) * window;
    const Nanos end = std::min(begin + static_cast<Nanos>(run.count) * window, slices.back().end);
    const int level = level_of(run, busiest, limits);
    if (!list.empty() && list.back().level == level)
      list.back().end = end;
    else
      list.push_back({begin, end, level});
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
