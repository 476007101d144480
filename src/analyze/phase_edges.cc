// SPDX-License-Identifier: Apache-2.0
#include "analyze/phase_edges.h"

#include <algorithm>
#include <map>

#include "analyze/ends.h"
#include "analyze/utilisation.h"

namespace headroom {

namespace {

// When the phases of each process change.
std::map<std::int64_t, std::vector<Nanos>> edges_of(const NamedPhases& named) {
  std::map<std::int64_t, std::vector<Nanos>> edges;
  for (const auto& [pid, tracks] : named.of_pid) {
    std::vector<Nanos> all;
    for (const std::size_t track : tracks) {
      const PhaseTrack& said = named.tracks[track];
      if (said.via != "marks" && said.via != "nvtx") continue;
      for (const NamedStretch& stretch : said.stretches) all.insert(all.end(), {stretch.begin, stretch.end});
    }
    std::sort(all.begin(), all.end());
    if (!all.empty()) edges.emplace(pid, std::move(all));
  }
  return edges;
}

bool any_in(const std::vector<Nanos>& edges, const UtilSample& sample) {
  const auto next = std::upper_bound(edges.begin(), edges.end(), sample.begin);
  return next != edges.end() && *next < sample.end;
}

struct Edge {
  Nanos begin = 0, end = 0;  // of the reading
  std::int64_t pid = 0;
};

// Readings whose busy part belongs to their begin, in order of time.
std::vector<Edge> falling_edges(const std::vector<UtilSample>& samples,
                                const std::map<std::int64_t, std::vector<Nanos>>& edges) {
  std::vector<Edge> falling;
  for (std::size_t i = 1; i + 1 < samples.size(); ++i) {
    const UtilSample &before = samples[i - 1], &sample = samples[i], &after = samples[i + 1];
    const Nanos busy = busy_ns(sample);
    if (sample.exact || busy == 0 || busy == sample.end - sample.begin) continue;
    if (!before.util || !after.util || *before.util <= *after.util) continue;
    for (const auto& [pid, at] : edges)
      if (any_in(at, sample) && !any_in(at, before) && !any_in(at, after))
        falling.push_back({sample.begin, sample.end, pid});
  }
  return falling;
}

// Kernels of the job, or a wait between two of them: what else a process is at is at one end of its time.
bool may_move(const Slice& slice) {
  return slice.account == Account::kUseful ||
         (!is_busy(slice.account) && slice.account != Account::kStartup && slice.account != Account::kTeardown &&
          slice.account != Account::kUnobserved && !an_end_lies_in(slice));
}

std::vector<Slice> cut_at(const std::vector<Slice>& slices, const std::vector<Edge>& edges) {
  std::vector<Slice> cut;
  cut.reserve(slices.size() + 2 * edges.size());
  std::size_t next = 0;
  for (Slice slice : slices) {
    while (next < edges.size() && edges[next].end <= slice.begin) ++next;
    for (std::size_t i = next; i < edges.size() && edges[i].begin < slice.end; ++i)
      for (const Nanos at : {edges[i].begin, edges[i].end})
        if (at > slice.begin && at < slice.end) {
          cut.push_back(slice);
          cut.back().end = slice.begin = at;
        }
    cut.push_back(slice);
  }
  return cut;
}

}  // namespace

void place_at_edges(const Recording& recording, const NamedPhases& named, const Thresholds& limits,
                    std::vector<DeviceTime>& devices) {
  const auto edges = edges_of(named);
  if (edges.empty()) return;
  for (DeviceTime& device : devices) {
    const std::vector<Edge> falling = falling_edges(util_samples(recording, device.source, limits), edges);
    if (falling.empty()) continue;
    device.slices = cut_at(device.slices, falling);
    for (const Edge& edge : falling) {
      const auto begins_before = [](const Slice& slice, Nanos at) { return slice.begin < at; };
      const auto first = std::lower_bound(device.slices.begin(), device.slices.end(), edge.begin, begins_before);
      const auto last = std::lower_bound(first, device.slices.end(), edge.end, begins_before);
      if (!std::all_of(first, last, [&](const Slice& slice) {
            return slice.pid == edge.pid && slice.task == first->task && may_move(slice);
          }))
        continue;
      std::stable_partition(first, last, [](const Slice& slice) { return is_busy(slice.account); });
      Nanos at = edge.begin;
      for (auto slice = first; slice != last; ++slice) {
        const Nanos length = slice->end - slice->begin;
        slice->begin = at;
        slice->end = at += length;
      }
    }
  }
}

}  // namespace headroom
