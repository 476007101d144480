// SPDX-License-Identifier: Apache-2.0
#include "analyze/utilisation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "analyze/gpu_works.h"
#include "base/median.h"
#include "base/steady.h"

namespace headroom {

namespace {

// What one track's readings say, clipped to [begin, end): gaps between the samples are simply missing.
std::vector<UtilSample> readings(const Track& track, Nanos begin, Nanos end, Nanos nominal, double gap_factor) {
  std::vector<UtilSample> samples;
  const Column* util = track.find(Metric::kGpuUtil);
  if (!util) return samples;
  std::vector<Nanos> gaps;
  gaps.reserve(track.at.size());
  samples.reserve(track.at.size());
  for (std::size_t i = 1; i < track.at.size(); ++i) gaps.push_back(track.at[i] - track.at[i - 1]);
  Nanos spacing = nominal > 0 ? nominal : kSecond;
  if (!gaps.empty()) spacing = std::max<Nanos>(median(std::move(gaps)), 1);
  for (std::size_t i = 0; i < track.at.size(); ++i) {
    if (!util->has(i)) continue;
    const Nanos at = track.at[i];
    Nanos from = at - spacing;
    if (i > 0 && static_cast<double>(at - track.at[i - 1]) <= gap_factor * static_cast<double>(spacing))
      from = track.at[i - 1];
    from = std::max({from, begin, samples.empty() ? begin : samples.back().end});
    const Nanos to = std::min(at, end);
    if (to > from) samples.push_back({from, to, std::clamp<std::int64_t>(util->values[i], 0, kFullUtil)});
  }
  return samples;
}

// `first` where it speaks, `second` in its gaps, and unobserved in the gaps of both.
std::vector<UtilSample> merge(const std::vector<UtilSample>& first, const std::vector<UtilSample>& second, Nanos begin,
                              Nanos end) {
  std::vector<UtilSample> merged;
  merged.reserve(first.size() + second.size() + 1);
  std::size_t other = 0;
  const auto fill = [&](Nanos from, Nanos to) {
    while (other < second.size() && second[other].end <= from) ++other;
    for (std::size_t i = other; i < second.size() && second[i].begin < to; ++i) {
      const Nanos piece = std::max(from, second[i].begin), stop = std::min(to, second[i].end);
      if (piece > from) merged.push_back({from, piece, std::nullopt});
      if (stop > piece) merged.push_back({piece, stop, second[i].util, second[i].exact, second[i].copies});
      from = stop;
    }
    if (to > from) merged.push_back({from, to, std::nullopt});
  };
  Nanos at = begin;
  for (const UtilSample& sample : first) {
    if (sample.begin > at) fill(at, sample.begin);
    merged.push_back(sample);
    at = sample.end;
  }
  if (end > at) fill(at, end);
  return merged;
}

// A look at GPM tells of the time since the look before it for how long the compute engine was active. Its stamps and
// the ring buffer's are a reading's length apart at most, so that only readings well within that time can show that
// more of it was utilised. (The readings of the ticks cannot: each is of a part of its time.)
void tell_copies(const Track& track, std::vector<UtilSample>& samples, const Thresholds& limits) {
  const Column* active = track.find(Metric::kGraphicsActive);
  if (!active) return;
  std::optional<Nanos> before;
  for (std::size_t row = 0; row < track.at.size(); ++row) {
    const auto share = active->at(row);
    if (!share && share.error() == Absent::kNotSampled) continue;
    const std::optional<Nanos> from = std::exchange(before, track.at[row]);
    const Nanos to = track.at[row];
    if (!share || !from) continue;
    const auto first = samples.begin() + static_cast<std::ptrdiff_t>(count_until(
                                             samples, *from, [](const UtilSample& sample) { return sample.end; }));
    const auto last = std::find_if(first, samples.end(), [&](const UtilSample& one) { return one.begin >= to; });
    Nanos least = 0, utilised = 0;
    for (auto sample = first; sample != last; ++sample) {
      utilised += busy_ns(*sample);
      if (sample->begin >= *from && sample->end <= to) least += busy_ns(*sample);
    }
    const double engine = static_cast<double>(std::max<std::int64_t>(0, *share)) / static_cast<double>(kFullUtil);
    const auto length = static_cast<double>(to - *from);
    if (static_cast<double>(least) < (engine + limits[Threshold::kCopiesAlone]) * length) continue;
    const double kernels = std::min(1.0, engine * length / static_cast<double>(utilised));
    for (auto sample = first; sample != last; ++sample) {
      // One across the edge is of the time that has more of it.
      const Nanos middle = sample->begin + (sample->end - sample->begin) / 2;
      if (!sample->util || middle < *from || middle >= to) continue;
      const auto left = static_cast<std::int64_t>(std::llround(kernels * static_cast<double>(*sample->util)));
      sample->copies = *sample->util - left;
      sample->util = left;
    }
  }
}

// What a profiler saw: neighbours that are both idle, or both busy, are one.
std::vector<UtilSample> profiled(const Recording& recording, SourceId gpu) {
  std::vector<UtilSample> samples;
  for (const WorkStretch& stretch : work_stretches(recording, gpu)) {
    const std::int64_t util = stretch.busy() ? kFullUtil : 0;
    if (!samples.empty() && samples.back().util == util && samples.back().end == stretch.begin)
      samples.back().end = stretch.end;
    else
      samples.push_back({stretch.begin, stretch.end, util, true});
  }
  return samples;
}

}  // namespace

std::vector<UtilSample> util_samples(const Recording& recording, SourceId gpu, const Thresholds& limits) {
  const double gap = limits[Threshold::kGapFactor];
  const auto& meta = recording.meta;
  const auto& key = recording.sources[static_cast<std::size_t>(gpu)].key;
  std::vector<UtilSample> ring;
  if (const auto id = recording.find(SourceKind::kGpuUtilRing, key))
    ring = readings(recording.tracks[static_cast<std::size_t>(*id)], meta.start, meta.end, 0, gap);
  const auto ticks =
      readings(recording.tracks[static_cast<std::size_t>(gpu)], meta.start, meta.end, meta.interval, gap);
  tell_copies(recording.tracks[static_cast<std::size_t>(gpu)], ring, limits);
  const std::vector<UtilSample> seen = merge(ring, ticks, meta.start, meta.end);
  const std::vector<UtilSample> exact = profiled(recording, gpu);
  if (exact.empty()) return seen;
  return merge(exact, seen, meta.start, meta.end);
}

Nanos busy_error(const Recording& recording, SourceId gpu, Nanos begin, Nanos end, const Thresholds& limits) {
  const auto& key = recording.sources[static_cast<std::size_t>(gpu)].key;
  if (recording.find(SourceKind::kGpuUtilRing, key) || recording.find(SourceKind::kGpuWork, key)) return 0;
  double squares = 0, pairs = 0;
  const UtilSample* before = nullptr;
  const auto& meta = recording.meta;
  const auto samples = readings(recording.tracks[static_cast<std::size_t>(gpu)], meta.start, meta.end, meta.interval,
                                limits[Threshold::kGapFactor]);
  for (const UtilSample& sample : samples) {
    if (sample.begin < begin || sample.end > end) continue;
    if (before) {
      const double step = static_cast<double>(*sample.util - *before->util) / static_cast<double>(kFullUtil);
      squares += step * step;
      pairs += 1;
    }
    before = &sample;
  }
  if (pairs == 0) return 0;
  const double error = 2 * std::sqrt(squares / 2 / pairs / (pairs + 1));
  return static_cast<Nanos>(error * static_cast<double>(end - begin));
}

IdleTime::IdleTime(std::vector<UtilSample> samples) : samples_(std::move(samples)) {
  idle_before_.reserve(samples_.size() + 1);
  idle_before_.push_back(0);
  for (const UtilSample& sample : samples_)
    idle_before_.push_back(idle_before_.back() + (sample.util ? sample.end - sample.begin - busy_ns(sample) : 0));
}

std::size_t IdleTime::at(Nanos at) const {
  return count_until(samples_, at, [](const UtilSample& sample) { return sample.end; });
}

double IdleTime::share(Nanos begin, Nanos end) const {
  if (end <= begin) return 0;
  const std::size_t first = at(begin);
  const std::size_t last =
      std::max(first, count_until(samples_, end - 1, [](const UtilSample& sample) { return sample.begin; }));
  if (first == last) return 0;
  const Nanos idle = idle_before_[last] - idle_before_[first];
  const Nanos length = samples_[last - 1].end - samples_[first].begin;
  return static_cast<double>(idle) / static_cast<double>(std::max<Nanos>(1, length));
}

namespace {

// `share` of the sample, in 1e-4; rounded towards the larger of the two parts.
Nanos part_of(const UtilSample& sample, std::int64_t share) {
  const Nanos length = sample.end - sample.begin;
  const Nanos tail = (length % kFullUtil) * share;  // length * share could overflow
  const Nanos floor = length / kFullUtil * share + tail / kFullUtil;
  const bool rest = tail % kFullUtil != 0;
  return rest && 2 * share >= kFullUtil ? floor + 1 : floor;
}

}  // namespace

Nanos busy_ns(const UtilSample& sample) { return sample.util ? part_of(sample, *sample.util) : 0; }

Nanos copies_ns(const UtilSample& sample) {
  return std::min(part_of(sample, sample.copies), sample.end - sample.begin - busy_ns(sample));
}

}  // namespace headroom
