// SPDX-License-Identifier: Apache-2.0
#include "analyze/gpu_analysis.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "analyze/utilisation.h"

namespace headroom {

namespace {

// What a counter of 32 bits counted at the fewest: at 8 GB/s it wraps twice in a second (an H200, driver 580).
std::int64_t counted(std::int64_t before, std::int64_t now) {
  constexpr std::int64_t kWrap = std::int64_t{1} << 32;
  if (now >= before) return now - before;
  return before < kWrap ? now + kWrap - before : 0;
}

// Bytes that came to the device over PCIe: by GPM's rates where there are any, else by the counter.
std::optional<std::vector<CopiedBytes>> copied_to(const Track& track, const Window& window) {
  const Column *total = track.find(Metric::kPcieRx), *rate = track.find(Metric::kPcieRxRate);
  for (std::size_t row = 0; rate && total && row < track.at.size(); ++row)
    if (rate->has(row)) total = nullptr;
  std::optional<std::vector<CopiedBytes>> copied;
  std::optional<std::size_t> before;
  for (std::size_t row = 0; row < track.at.size(); ++row) {
    const Column* column = total ? total : rate;
    if (!column || !column->has(row)) continue;
    const auto last = std::exchange(before, row);
    if (!last || track.at[row] <= window.begin || track.at[*last] >= window.end) continue;
    const double more = total ? static_cast<double>(counted(total->values[*last], total->values[row]))
                              : static_cast<double>(rate->values[row]) * seconds(track.at[row] - track.at[*last]);
    if (!copied) copied.emplace();
    copied->push_back({track.at[*last], track.at[row], more});
  }
  return copied;
}

// It has readings in the window and none of its utilisation; a GPU that was lost is something else.
bool utilisation_unreported(const Track& track, const DeviceStats& stats, const Ledger& ledger, const Window& window) {
  if (ledger.span() == 0 || ledger.total(Account::kUnobserved, stats.device) < ledger.span()) return false;
  const MetricStats* util = stats.find(Metric::kGpuUtil);
  const auto& at = track.at;
  const bool any = std::any_of(at.begin(), at.end(), [&](Nanos reading) { return window.holds(reading); });
  return any && (!util || (util->samples == 0 && util->absent != Absent::kDeviceLost));
}

// Of few readings the last five: each grew over the one before by about as much, while own kernels ran. What is loaded
// comes to its end, and has hardly any.
double pace_of_few(const std::vector<MemoryEnd>& readings, const DeviceTime& time, const Window& window) {
  constexpr std::size_t kFew = 5;
  constexpr double kAlike = 0.5;  // of their mean, more or less
  if (readings.size() < kFew) return 0;
  const std::span last = std::span(readings).last(kFew);
  const Nanos spacing = (last.back().at - last.front().at) / static_cast<Nanos>(kFew - 1);
  if (window.end - last.back().at > 2 * spacing) return 0;  // what came then is not known
  const double pace = (last.back().used - last.front().used) / seconds(last.back().at - last.front().at);
  for (std::size_t i = 1; i < last.size(); ++i) {
    const Nanos from = last[i - 1].at, to = last[i].at;
    const double one = (last[i].used - last[i - 1].used) / seconds(to - from);
    const bool computed = std::any_of(time.slices.begin(), time.slices.end(), [&](const Slice& slice) {
      return slice.account == Account::kUseful && slice.begin < to && slice.end > from;
    });
    if (one <= 0 || std::abs(one - pace) > kAlike * pace || !computed) return 0;
  }
  return pace;
}

constexpr Nanos kPartsOfHalf = 4;

Nanos part_of_half(const Window& window) { return window.length() / 2 / kPartsOfHalf; }

// The last reading of the first half, and of each part of the second, up to the first that is without a reading.
std::vector<MemoryEnd> ends_of_parts(const std::vector<MemoryEnd>& readings, const Window& window) {
  const Nanos half = window.begin + window.length() / 2, part = part_of_half(window);
  std::vector<MemoryEnd> ends;
  if (part <= 0) return ends;
  for (const MemoryEnd& one : readings) {
    const auto number =
        static_cast<std::size_t>(one.at <= half ? 0 : 1 + std::min(kPartsOfHalf - 1, (one.at - half) / part));
    if (number > ends.size()) break;
    if (number == ends.size())
      ends.push_back(one);
    else
      ends[number] = one;
  }
  return ends;
}

// Whether it has come to its end, by the readings of the last quarter of the last part.
bool grows_no_more(const std::vector<MemoryEnd>& readings, const Window& window) {
  const Nanos late = window.end - part_of_half(window) / 4;
  const auto first =
      std::find_if(readings.begin(), readings.end(), [&](const MemoryEnd& one) { return one.at >= late; });
  return readings.end() - first > 2 && readings.back().used <= first->used;
}

// The readings of the second half in four parts, each of which grows by a quarter of their mean growth at least, and
// the last by half of it: else it has just begun, or come to its end. Nothing where a part is without a reading.
std::optional<double> pace_of(const std::vector<MemoryEnd>& readings, const Window& window) {
  const std::vector<MemoryEnd> ends = ends_of_parts(readings, window);
  if (ends.size() <= kPartsOfHalf) return std::nullopt;
  if (grows_no_more(readings, window)) return 0;
  const double grown = ends.back().used - ends.front().used;
  for (std::size_t i = 1; i < ends.size(); ++i) {
    const double more = ends[i].used - ends[i - 1].used,
                 least = grown / static_cast<double>((i + 1 < ends.size() ? 4 : 2) * kPartsOfHalf);
    if (more <= 0 || more < least) return 0;
  }
  return grown / seconds(ends.back().at - ends.front().at);
}

// The last reading of a device's memory before the end of the job, which may have given it back by the next.
std::optional<MemoryEnd> memory_end(const Recording& recording, const DeviceTime& time, const Window& window) {
  const Track& track = track_of(recording, time.source);
  const Column* used = track.find(Metric::kMemoryUsed);
  if (!used) return std::nullopt;
  const auto total = static_cast<double>(std::max<std::int64_t>(0, time.device.memory_total_bytes.value_or(0)));
  std::optional<MemoryEnd> last;
  std::vector<MemoryEnd> readings;  // of the window
  for (std::size_t row = 0; row < track.at.size() && track.at[row] <= recording.meta.end; ++row) {
    if (!used->has(row)) continue;
    MemoryEnd now{track.at[row], static_cast<double>(used->values[row]), total, 0};
    if (last && now.used > last->used && now.at > last->at)
      now.grown = (now.used - last->used) / seconds(now.at - last->at);
    last = now;
    if (now.at >= window.begin) readings.push_back(now);
  }
  if (last) last->pace = pace_of(readings, window).value_or(pace_of_few(readings, time, window));
  return last;
}

// The share of kernels and the mean utilisation are of the same readings: a report says one number for both.
void say_as_the_ledger(const Ledger& ledger, DeviceStats& stats) {
  const Nanos observed = ledger.span() - ledger.total(Account::kUnobserved, stats.device);
  for (MetricStats& metric : stats.metrics)
    if (metric.metric == Metric::kGpuUtil && metric.samples > 0 && observed > 0)
      metric.mean = static_cast<double>(ledger.busy(stats.device)) / static_cast<double>(observed);
}

}  // namespace

Window readings_of(const Recording& recording, Window window) {
  if (window.begin <= recording.meta.start) window.begin = std::numeric_limits<Nanos>::min();
  if (window.end >= recording.meta.end) window.end = std::numeric_limits<Nanos>::max();
  return window;
}

GpuAnalysis gpu_analysis(const Recording& recording, std::size_t index, const DeviceTime& time, const Ledger& ledger,
                         const Thresholds& limits) {
  const Window window{ledger.begin, ledger.end};
  const Track& track = track_of(recording, time.source);
  const Window readings = readings_of(recording, window);
  GpuAnalysis gpu;
  gpu.stats = {index, device_stats(recording, time.source, readings, limits)};
  gpu.clocks = clock_limits(track, time.slices, readings, limits, time.device.sm_clock_max_mhz);
  gpu.stalls = find_stalls(track, readings, limits);
  gpu.stall = lasting_stall(gpu.stalls, time.slices, limits);
  gpu.quiet_end = find_quiet_end(track, time.slices, readings, limits);
  gpu.job_gaps = find_job_gaps(track, readings, limits);
  gpu.free_until = free_at_begin(track, readings, limits);
  gpu.beat = find_beat(track, readings);
  gpu.copied = copied_to(track, window);
  gpu.link = link_under_load(track, time.device, readings, limits);
  if (window.end >= recording.meta.end) gpu.memory_end = memory_end(recording, time, window);
  gpu.profile = device_profile(recording, time.source, window.begin, window.end);
  gpu.held = held_memory(track, readings, recording.meta.interval);
  gpu.unreported = utilisation_unreported(track, gpu.stats, ledger, window);
  if (gpu.unreported) gpu.power_levels = power_levels(track, readings);
  gpu.busy_error = busy_error(recording, time.source, window.begin, window.end, limits);
  say_as_the_ledger(ledger, gpu.stats);
  return gpu;
}

}  // namespace headroom
