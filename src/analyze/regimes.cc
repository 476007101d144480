// SPDX-License-Identifier: Apache-2.0
#include "analyze/regimes.h"

#include <algorithm>
#include <utility>

#include "base/median.h"

namespace headroom {

namespace {

// What a row says of a busy device; nothing where it is not busy, or where one of the three is absent that others have.
struct BusyRow {
  std::size_t row = 0;
  double level = 0;
  std::optional<double> memory;
};

// The first of two metrics that was read at all; nullptr: neither.
const Column* read_one(const Track& track, Metric first, Metric second) {
  for (const Metric metric : {first, second}) {
    const Column* column = track.find(metric);
    for (std::size_t row = 0; column && row < column->values.size(); ++row)
      if (column->has(row)) return column;
  }
  return nullptr;
}

// What tells how much a busy device does: its power, or its SMs; else the traffic of its memory. nullptr: nothing.
const Column* read_work(const Track& track) {
  const Column* work = read_one(track, Metric::kPower, Metric::kSmActive);
  return work ? work : read_one(track, Metric::kMemoryUtil, Metric::kDramActive);
}
bool is_traffic(Metric metric) { return metric == Metric::kMemoryUtil || metric == Metric::kDramActive; }

// `work`: of what the device does while it is busy.
std::vector<BusyRow> busy_rows(const Track& track, const Column* work, const Window& window, const Thresholds& limits) {
  const Column *util = track.find(Metric::kGpuUtil),
               *memory = read_one(track, Metric::kMemoryUtil, Metric::kDramActive);
  std::vector<BusyRow> rows;
  if (!util || !work) return rows;
  rows.reserve(track.at.size());
  std::optional<double> level, used;  // they may be read more seldom than the utilisation: the last reading holds
  for (std::size_t row = 0; row < track.at.size(); ++row) {
    if (work->has(row)) level = to_unit(work->metric, work->values[row]);
    if (memory && memory->has(row)) used = to_unit(memory->metric, memory->values[row]);
    if (level && (used || !memory) && window.holds(track.at[row]) && util->has(row) &&
        to_unit(Metric::kGpuUtil, util->values[row]) >= limits[Threshold::kFullBusy])
      rows.push_back({row, *level, used});
  }
  return rows;
}

}  // namespace

std::vector<Stall> find_stalls(const Track& track, const Window& window, const Thresholds& limits) {
  constexpr double kTellingTraffic = 0.1;  // usual one, below which that of kernels that work may fall to nothing
  const Column* work = read_work(track);
  const auto rows = busy_rows(track, work, window, limits);
  std::vector<double> working;  // of the rows whose memory is in use
  working.reserve(rows.size());
  for (const BusyRow& row : rows)
    if (!row.memory || *row.memory > limits[Threshold::kStallMemory]) working.push_back(row.level);
  std::vector<Stall> stalls;
  if (working.empty()) return stalls;
  const double usual = median(working);
  const bool by_traffic = is_traffic(work->metric);
  if (by_traffic && usual < kTellingTraffic) return stalls;
  const auto waits = [&](const BusyRow& row) {
    const bool untouched = !row.memory || *row.memory <= limits[Threshold::kStallMemory];
    return untouched && row.level <= limits[Threshold::kStallPower] * usual;
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!waits(rows[i])) continue;
    const Nanos begin = rows[i].row > 0 ? std::max(track.at[rows[i].row - 1], window.begin) : track.at[rows[i].row];
    double level = 0;
    std::size_t j = i;
    for (; j < rows.size() && waits(rows[j]) && rows[j].row == rows[i].row + (j - i); ++j) level += rows[j].level;
    stalls.push_back({.time = {begin, track.at[rows[j - 1].row]},
                      .by = work->metric,
                      .level = level / static_cast<double>(j - i),
                      .usual = usual,
                      .memory_read = !by_traffic && rows[i].memory.has_value()});
    i = j - 1;
  }
  return stalls;
}

std::optional<Stall> lasting_stall(const std::vector<Stall>& stalls, const std::vector<Slice>& slices,
                                   const Thresholds& limits) {
  const auto longest = std::max_element(stalls.begin(), stalls.end(), [](const Stall& one, const Stall& other) {
    return one.time.length() < other.time.length();
  });
  if (longest == stalls.end() || !longest->memory_read ||
      longest->time.length() < limits.time(Threshold::kStallShortest))
    return std::nullopt;
  const bool useful = std::any_of(slices.begin(), slices.end(), [&](const Slice& slice) {
    return slice.account == Account::kUseful && slice.end > longest->time.begin && slice.begin < longest->time.end;
  });
  return useful ? std::optional(*longest) : std::nullopt;
}

namespace {

// When one of the GPUs of the job had no kernel; in order. None of that is time in which the same GPU had one.
std::vector<Window> any_idle(const std::vector<DeviceTime>& devices, const std::vector<bool>& idle_peer) {
  std::vector<Window> times;
  for (std::size_t device = 0; device < devices.size(); ++device)
    for (const Slice& slice : devices[device].slices)
      if (!idle_peer[device] && !is_busy(slice.account) && slice.account != Account::kUnobserved)
        times.push_back({slice.begin, slice.end});
  return joined(std::move(times));
}

// The useful time of one stall that lies in `idle`.
Claims waited(std::size_t device, const std::vector<Slice>& slices, const Window& stall,
              const std::vector<Window>& idle) {
  Claims claims;
  auto time = std::lower_bound(idle.begin(), idle.end(), stall.begin,
                               [](const Window& one, Nanos at) { return one.end <= at; });
  auto slice = std::lower_bound(slices.begin(), slices.end(), stall.begin,
                                [](const Slice& one, Nanos at) { return one.end <= at; });
  while (time != idle.end() && slice != slices.end() && std::max(time->begin, slice->begin) < stall.end) {
    const Nanos from = std::max({stall.begin, time->begin, slice->begin});
    const Nanos to = std::min({stall.end, time->end, slice->end});
    if (from < to && slice->account == Account::kUseful)
      claims.push_back({device, from, to, slice->account, slice->where});
    time->end <= slice->end ? static_cast<void>(++time) : static_cast<void>(++slice);
  }
  return claims;
}

constexpr std::int64_t kAgain = 3;  // waits from which they are a pattern

bool mostly_of(Nanos part, Nanos whole, const Thresholds& limits) {
  return static_cast<double>(part) >= limits[Threshold::kMajority] * static_cast<double>(whole);
}

// Of one GPU; the levels are means over its time.
WaitsInKernels waits_of(std::size_t device, const std::vector<Stall>& stalls, const std::vector<Slice>& slices,
                        const std::vector<Window>& idle, const Thresholds& limits) {
  WaitsInKernels waits;
  const auto last = std::find_if(slices.rbegin(), slices.rend(),
                                 [](const Slice& slice) { return slice.account == Account::kUseful; });
  if (last == slices.rend()) return waits;
  double level = 0, usual = 0;  // times seconds
  Nanos longest = 0;
  for (const Stall& stall : stalls) {
    const Claims claims = waited(device, slices, stall.time, idle);
    // The last one, after which nothing was seen to work, may be one more: no longer than those before it.
    if (stall.time.end >= last->end && stall.time.length() > longest) continue;
    if (!mostly_of(length(claims), stall.time.length(), limits)) continue;
    longest = std::max(longest, stall.time.length());
    waits.claims.insert(waits.claims.end(), claims.begin(), claims.end());
    level += stall.level * seconds(length(claims)), usual += stall.usual * seconds(length(claims));
    waits.by = stall.by;
    waits.memory_read = stall.memory_read;
    ++waits.times;
  }
  // Of kernels that work while others idle, some may draw little power by chance.
  const Nanos time = length(waits.claims),
              beside = length(waited(device, slices, {slices.front().begin, last->end}, idle));
  if (waits.times < kAgain || !mostly_of(time, beside, limits)) return {};
  waits.level = level / seconds(time), waits.usual = usual / seconds(time);
  return waits;
}

// The times that lie in both; each in order.
std::vector<Window> in_both(const std::vector<Window>& one, const std::vector<Window>& other) {
  std::vector<Window> both;
  for (auto a = one.begin(), b = other.begin(); a != one.end() && b != other.end();) {
    const Window time{std::max(a->begin, b->begin), std::min(a->end, b->end)};
    if (time.begin < time.end) both.push_back(time);
    a->end <= b->end ? static_cast<void>(++a) : static_cast<void>(++b);
  }
  return both;
}

std::vector<Window> times_of(const std::vector<Stall>& stalls) {
  std::vector<Window> times;
  for (const Stall& stall : stalls) times.push_back(stall.time);
  return times;
}

Nanos length_of(const std::vector<Window>& times) {
  Nanos sum = 0;
  for (const Window& time : times) sum += time.length();
  return sum;
}

// The GPUs of a job, by position.
struct StallsOfGpus {
  const std::vector<std::vector<Stall>>& stalls;
  const std::vector<DeviceTime>& devices;
  const std::vector<bool>& idle_peer;
  const Thresholds& limits;
};

// The times at which all GPUs but `worker` and idle ones stall.
std::vector<Window> common_stalls(std::optional<std::size_t> worker, const StallsOfGpus& gpus) {
  std::optional<std::vector<Window>> times;
  for (std::size_t device = 0; device < gpus.stalls.size(); ++device)
    if (device != worker && !gpus.idle_peer[device])
      times = times ? in_both(*times, times_of(gpus.stalls[device])) : times_of(gpus.stalls[device]);
  return times.value_or(std::vector<Window>{});
}

// All GPUs but `waits.worker` wait in these times, in which most of what each of them stalls lies: else none does.
WaitsInKernels wait_together(WaitsInKernels waits, const std::vector<Window>& times, const StallsOfGpus& gpus) {
  waits.times = static_cast<std::int64_t>(times.size());
  double level = 0, usual = 0;
  for (std::size_t device = 0; device < gpus.devices.size(); ++device) {
    if (device == waits.worker || gpus.idle_peer[device]) continue;
    if (!mostly_of(length_of(times), length_of(times_of(gpus.stalls[device])), gpus.limits)) return {};
    for (const Stall& stall : gpus.stalls[device]) {
      const Claims claims = waited(device, gpus.devices[device].slices, stall.time, times);
      waits.claims.insert(waits.claims.end(), claims.begin(), claims.end());
      level += stall.level * seconds(length(claims)), usual += stall.usual * seconds(length(claims));
      waits.by = stall.by;
      waits.memory_read = waits.memory_read && stall.memory_read;
    }
  }
  const double time = seconds(length(waits.claims));
  if (time <= 0) return {};
  waits.level = level / time, waits.usual = usual / time;
  return waits;
}

// All other GPUs wait while this one works.
WaitsInKernels waits_for_worker(std::size_t worker, const StallsOfGpus& gpus) {
  std::vector<Window> works;
  for (const Slice& slice : gpus.devices[worker].slices)
    if (slice.account == Account::kUseful) works.push_back({slice.begin, slice.end});
  // That kernels hardly use their memory beside a GPU that works may be how they work.
  for (const auto& own : gpus.stalls)
    if (!own.empty() && is_traffic(own.front().by)) return {};
  const std::vector<Window> times = common_stalls(worker, gpus);
  // A single one may do another job: whoever tells of it says so.
  if (static_cast<std::int64_t>(times.size()) < kAgain) return {};
  const Nanos waits_itself = length_of(in_both(times, times_of(gpus.stalls[worker])));
  if (!mostly_of(length_of(in_both(times, works)) - waits_itself, length_of(times), gpus.limits)) return {};
  return wait_together({.worker = worker}, times, gpus);
}

// All hardly work at the same times, again and again. Power alone does not tell that: their kernels may be small.
WaitsInKernels all_at_once(const StallsOfGpus& gpus) {
  const Nanos lasting = gpus.limits.time(Threshold::kStallShortest);
  for (std::size_t device = 0; device < gpus.devices.size(); ++device)
    for (const Stall& stall : gpus.stalls[device])
      if (!gpus.idle_peer[device] && (!stall.memory_read || stall.time.length() >= lasting)) return {};
  const std::vector<Window> times = common_stalls(std::nullopt, gpus);
  if (static_cast<std::int64_t>(times.size()) < kAgain) return {};
  return wait_together({.everywhere = true}, times, gpus);
}

}  // namespace

WaitsInKernels waits_in_kernels(const std::vector<std::vector<Stall>>& stalls, const std::vector<DeviceTime>& devices,
                                const std::vector<bool>& idle_peer, const Thresholds& limits) {
  WaitsInKernels all;
  double level = 0, usual = 0;
  const std::vector<Window> idle = any_idle(devices, idle_peer);
  for (std::size_t device = 0; device < devices.size(); ++device) {
    if (stalls[device].empty()) continue;
    const WaitsInKernels own = waits_of(device, stalls[device], devices[device].slices, idle, limits);
    all.claims.insert(all.claims.end(), own.claims.begin(), own.claims.end());
    all.times = std::max(all.times, own.times);
    all.memory_read = all.memory_read && own.memory_read;
    level += own.level * seconds(length(own.claims)), usual += own.usual * seconds(length(own.claims));
    if (!own.claims.empty()) all.by = own.by;
  }
  if (const double time = seconds(length(all.claims)); time > 0) all.level = level / time, all.usual = usual / time;
  const StallsOfGpus gpus{stalls, devices, idle_peer, limits};
  for (std::size_t device = 0; device < devices.size() && all.claims.empty(); ++device)
    if (!idle_peer[device]) all = waits_for_worker(device, gpus);
  return all.claims.empty() ? all_at_once(gpus) : all;
}

namespace {

void remember_memory(const Track& track, const Window& window, QuietEnd& end) {
  const Column* memory = track.find(Metric::kMemoryUsed);
  for (std::size_t row = 0; memory && row < track.at.size(); ++row) {
    if (!window.holds(track.at[row]) || !memory->has(row)) continue;
    (track.at[row] <= end.from ? end.memory_before : end.memory_after) =
        to_unit(Metric::kMemoryUsed, memory->values[row]);
  }
}

// Few kernels from some instant to the end, and little memory in use from then on: of so many times `more` kernels so
// many times less.
std::optional<QuietEnd> few_kernels_after(const Track& track, Nanos last_kernel, const Window& window,
                                          const Thresholds& limits, double more) {
  const double few = 0.05 * more, freed = limits[Threshold::kMemoryFreed] / more;
  const Column* util = track.find(Metric::kGpuUtil);
  QuietEnd end{.few_kernels = true};
  Nanos last = 0;
  for (std::size_t row = 0; util && row < track.at.size(); ++row) {
    if (!window.holds(track.at[row]) || !util->has(row)) continue;
    last = track.at[row];
    if (to_unit(Metric::kGpuUtil, util->values[row]) > few) end.from = last;
  }
  if (end.from == 0 || end.from >= last_kernel || last - end.from < limits.time(Threshold::kHeldLong))
    return std::nullopt;
  remember_memory(track, window, end);
  const bool given_back = end.memory_before && end.memory_after && *end.memory_after <= freed * *end.memory_before;
  return given_back ? std::optional(end) : std::nullopt;
}

constexpr double kDesktop = 0.2, kLess = 1.0 / 3;  // of the time; of the utilisation while a job was there

// Readings of a device's utilisation and memory together.
struct MemoryRows {
  const Track& track;
  const Column *util = track.find(Metric::kGpuUtil), *memory = track.find(Metric::kMemoryUsed);
  std::vector<std::size_t> rows;
  double freed = 0;  // so much or less is in use where nearly all was given back

  MemoryRows(const Track& of, const Window& window, const Thresholds& limits) : track(of) {
    std::int64_t most = 0;
    for (std::size_t row = 0; util && memory && row < track.at.size(); ++row) {
      if (!window.holds(track.at[row]) || !util->has(row) || !memory->has(row)) continue;
      rows.push_back(row);
      most = std::max(most, memory->values[row]);
    }
    freed = limits[Threshold::kMemoryFreed] / 2 * static_cast<double>(most);
  }
  [[nodiscard]] bool held(std::size_t row) const { return static_cast<double>(memory->values[row]) > freed; }
  [[nodiscard]] double in_use(std::size_t row) const { return to_unit(Metric::kMemoryUsed, memory->values[row]); }
  [[nodiscard]] double busy(std::size_t row) const { return to_unit(Metric::kGpuUtil, util->values[row]); }
};

// A desktop in use, by a video say, runs kernels at any level: but where nearly all memory goes and stays away, and the
// GPU does far less from then on, a job ended.
std::optional<QuietEnd> memory_goes(const Track& track, const Window& window, const Thresholds& limits) {
  const MemoryRows read(track, window, limits);
  const auto held = [&](std::size_t row) { return read.held(row); };
  const auto last = std::find_if(read.rows.rbegin(), read.rows.rend(), held);
  if (last == read.rows.rend() || last == read.rows.rbegin()) return std::nullopt;
  QuietEnd end{.from = track.at[*last], .few_kernels = true};
  if (track.at[read.rows.back()] - end.from < limits.time(Threshold::kHeldLong)) return std::nullopt;
  double before = 0, after = 0, rows_before = 0, rows_after = 0;
  for (const std::size_t row : read.rows) {
    const bool ended = row > *last;
    (ended ? after : before) += read.busy(row);
    ++(ended ? rows_after : rows_before);
  }
  if (after / rows_after > std::min(kDesktop, kLess * before / rows_before)) return std::nullopt;
  remember_memory(track, window, end);
  return end;
}

// A desktop goes on with a few kernels where a job has given its memory back; one that is used with more of them, so
// that more memory has to tell.
std::optional<QuietEnd> desktop_goes_on(const Track& track, Nanos last_kernel, const Window& window,
                                        const Thresholds& limits) {
  for (const double more : {1.0, 2.0})
    if (auto end = few_kernels_after(track, last_kernel, window, limits, more)) return end;
  return memory_goes(track, window, limits);
}

}  // namespace

namespace {

// Whether the first reading of memory shows as much in use as a program takes, and most of what is in use later.
bool in_use_at_begin(const Track& track, const Window& window) {
  constexpr double kMost = 0.5, kProgram = 256.0 * (1 << 20);  // bytes
  const Column* memory = track.find(Metric::kMemoryUsed);
  std::optional<double> first;
  double most = 0;
  for (std::size_t row = 0; memory && row < track.at.size(); ++row) {
    if (!window.holds(track.at[row]) || !memory->has(row)) continue;
    const double used = to_unit(Metric::kMemoryUsed, memory->values[row]);
    if (!first) first = used;
    most = std::max(most, used);
  }
  return first && *first >= kProgram && *first >= kMost * most;
}

}  // namespace

std::optional<QuietEnd> find_quiet_end(const Track& track, const std::vector<Slice>& slices, const Window& window,
                                       const Thresholds& limits) {
  QuietEnd end;
  // Who was there before its first kernel, as a server is, may wait as long after its last.
  const bool there = in_use_at_begin(track, window);
  Nanos pause = 0, longest = 0;
  for (const Slice& slice : slices) {
    if (slice.account == Account::kUnobserved) continue;
    if (!is_busy(slice.account)) {
      if (end.from > 0 || there) pause += slice.end - slice.begin;
      continue;
    }
    longest = std::max(longest, std::exchange(pause, 0));
    end.from = slice.end;
  }
  if (end.from == 0 || pause < limits.time(Threshold::kHeldLong) ||
      static_cast<double>(pause) < limits[Threshold::kQuietEnd] * static_cast<double>(longest))
    return desktop_goes_on(track, end.from, window, limits);
  remember_memory(track, window, end);
  return end;
}

std::optional<Nanos> free_at_begin(const Track& track, const Window& window, const Thresholds& limits) {
  const Column* memory = track.find(Metric::kMemoryUsed);
  std::optional<Nanos> from, until;
  for (std::size_t row = 0; memory && row < track.at.size(); ++row) {
    if (!window.holds(track.at[row]) || !memory->has(row)) continue;
    const bool taken = to_unit(Metric::kMemoryUsed, memory->values[row]) >= kLeastContext;
    if (taken) return until && *until - *from >= limits.time(Threshold::kHeldLong) ? until : std::nullopt;
    if (!from) from = track.at[row];
    until = track.at[row];
  }
  return std::nullopt;
}

std::vector<JobGap> find_job_gaps(const Track& track, const Window& window, const Thresholds& limits) {
  constexpr std::size_t kFewest = 3;  // readings
  const MemoryRows read(track, window, limits);
  double busy = 0, rows = 0;  // while a job was there
  for (const std::size_t row : read.rows)
    if (read.held(row)) busy += read.busy(row), ++rows;
  std::vector<JobGap> gaps;
  std::optional<std::size_t> last;  // by position in the rows: the last that was held
  for (std::size_t i = 0; i < read.rows.size(); ++i) {
    if (!read.held(read.rows[i])) continue;
    const std::size_t begin = last ? *last + 1 : i;
    last = i;
    if (i - begin < kFewest) continue;
    JobGap gap{.time = {track.at[read.rows[begin - 1]], track.at[read.rows[i]]},
               .before = read.in_use(read.rows[begin - 1]),
               .after = read.in_use(read.rows[i])};
    double busy_in = 0;
    for (std::size_t k = begin; k < i; ++k) gap.in += read.in_use(read.rows[k]), busy_in += read.busy(read.rows[k]);
    const auto count = static_cast<double>(i - begin);
    gap.in /= count;
    if (gap.time.end - gap.time.begin < limits.time(Threshold::kHeldLong) ||
        busy_in / count > std::min(kDesktop, kLess * busy / rows))
      continue;
    gaps.push_back(gap);
  }
  return gaps;
}

}  // namespace headroom
