// SPDX-License-Identifier: Apache-2.0
#include "diagnose/joined_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analyze/ranks.h"
#include "base/strings.h"
#include "diagnose/claims.h"
#include "model/entities.h"
#include "model/parts.h"

namespace headroom::diagnose {

namespace {

std::string rank_name(const Source& source, const std::string& machine) {
  const std::string gpu = attr(source, "gpu_index"), worker = attr(source, "worker");
  const std::string place = machine + (gpu.empty() ? "" : " GPU " + gpu);
  return worker.empty() ? process_name(parse_number<std::int64_t>(attr(source, "pid")).value_or(0),
                                       parse_number<std::int64_t>(attr(source, "number")), place)
                        : fmt::format("worker {} ({})", worker, place);
}

// A machine is done with a step when the last of its ranks is.
Track last_of(const std::vector<const Track*>& ranks) {
  std::map<std::int64_t, std::pair<std::size_t, Nanos>> steps;  // how many did it, and when the last
  for (const Track* track : ranks) {
    const Column* counted = track->find(Metric::kSteps);
    std::int64_t before = -1;
    for (std::size_t row = 0; counted != nullptr && row < track->at.size(); ++row) {
      if (!counted->has(row) || counted->values[row] <= before) continue;
      before = counted->values[row];
      auto& [ranks_done, at] = steps[before];
      ++ranks_done;
      at = std::max(at, track->at[row]);
    }
  }
  std::vector<Nanos> times;
  std::vector<std::int64_t> counts;
  for (const auto& [step, done] : steps) {
    if (done.first != ranks.size() || (!times.empty() && done.second < times.back())) continue;
    times.push_back(done.second);
    counts.push_back(step);
  }
  return {std::move(times), {Column{Metric::kSteps, std::move(counts), {}}}, {}};
}

// The ranks of each of these machines as one.
Recording with_machines_as_ranks(const Recording& steps, const std::set<std::string>& machines) {
  Recording grouped;
  grouped.meta = steps.meta;
  std::map<std::pair<std::string, std::string>, std::vector<const Track*>> of_machine;  // by the way of counting, too
  for (std::size_t i = 0; i < steps.sources.size(); ++i) {
    const Source& source = steps.sources[i];
    if (source.kind != SourceKind::kMarks) continue;
    if (machines.contains(attr(source, "machine"))) {
      of_machine[{attr(source, "machine"), attr(source, "via")}].push_back(&steps.tracks[i]);
      continue;
    }
    grouped.sources.push_back(source);
    grouped.tracks.push_back(steps.tracks[i]);
  }
  for (const auto& [key, ranks] : of_machine) {
    grouped.sources.push_back({SourceKind::kMarks,
                               key.first + "/" + key.second,
                               kNoSource,
                               {{"via", key.second}, {"rank", "machine " + key.first}}});
    grouped.tracks.push_back(last_of(ranks));
  }
  return grouped;
}

Nanos idle_within(const std::vector<Slice>& slices, const std::vector<Window>& times) {
  Nanos sum = 0;
  auto time = times.begin();
  for (const Slice& slice : slices) {
    if (is_busy(slice.account) || slice.account == Account::kUnobserved) continue;
    while (time != times.end() && time->end <= slice.begin) ++time;
    for (auto at = time; at != times.end() && at->begin < slice.end; ++at)
      sum += std::min(at->end, slice.end) - std::max(at->begin, slice.begin);
  }
  return sum;
}

}  // namespace

Recording steps_in(const Recording& part) {
  Recording steps;
  steps.meta = part.meta;
  std::map<std::string, std::set<int>> gpus;  // by pid
  for (const SourceId id : part.all(SourceKind::kGpuProcess)) {
    const Source& source = part.sources[static_cast<std::size_t>(id)];
    if (source.parent == kNoSource) continue;
    gpus[attr(source, "pid")].insert(device_of(part.sources[static_cast<std::size_t>(source.parent)]).index);
  }
  const auto numbers = counting_ranks(part);
  for (const SourceId id : part.all(SourceKind::kMarks)) {
    const Track& track = track_of(part, id);
    const Column* counted = track.find(Metric::kSteps);
    if (counted == nullptr) continue;
    Source source = part.sources[static_cast<std::size_t>(id)];
    if (const auto number = numbers.find(source.parent); number != numbers.end())
      source.attrs["number"] = fmt::format("{}", number->second);
    source.parent = kNoSource;
    if (const auto own = gpus.find(attr(source, "pid")); own != gpus.end() && own->second.size() == 1)
      source.attrs["gpu_index"] = fmt::format("{}", *own->second.begin());
    steps.sources.push_back(std::move(source));
    steps.tracks.push_back({track.at, {*counted}, {}});
  }
  return steps;
}

std::vector<RankPace> paces_of_all(std::vector<Recording> steps, const std::vector<std::string>& machines,
                                   const Window& window, const Thresholds& limits) {
  std::map<std::string, std::string> machine_of;  // by the name of a rank
  for (std::size_t i = 0; i < steps.size(); ++i)
    for (Source& source : steps[i].sources) {
      source.attrs["machine"] = machines[i];
      source.attrs["rank"] = rank_name(source, machines[i]);
      machine_of[source.attrs["rank"]] = machines[i];
    }
  const Recording all = merged(std::move(steps));
  std::vector<RankPace> paces = rank_paces(all, window, limits);
  if (paces.empty() || paces.front().slowest <= limits[Threshold::kStraggler]) return paces;
  const std::string& slow = machine_of[paces.front().name];
  std::size_t ranks = 0;
  for (const RankPace& pace : paces) {
    if (machine_of[pace.name] != slow) continue;
    ++ranks;
    if (pace.slowest <= limits[Threshold::kStraggler]) return paces;
  }
  if (ranks < 2) return paces;
  constexpr std::size_t kFewest = 3;  // of two, nobody knows which one is slow
  std::set<std::string> every(machines.begin(), machines.end());
  std::vector<RankPace> grouped = rank_paces(
      with_machines_as_ranks(all, every.size() >= kFewest ? every : std::set<std::string>{slow}), window, limits);
  return grouped.empty() || grouped.front().name != "machine " + slow ? paces : grouped;
}

bool shows_beside_others(const WaitsInKernels& waits, const std::vector<DeviceTime>& devices,
                         const std::vector<bool>& idle_peers, const Thresholds& limits) {
  const std::vector<std::size_t> waiting = devices_of(waits.claims);
  std::set<std::string> hosts;
  for (const std::size_t device : waiting) hosts.insert(devices[device].device.host);
  const auto elsewhere = [&](std::size_t device) { return hosts != std::set{devices[device].device.host}; };
  if (waits.worker) return elsewhere(*waits.worker);
  const std::vector<Window> times = times_of(waits.claims);
  Nanos all = 0;
  for (const Window& time : times) all += time.length();
  for (std::size_t device = 0; device < devices.size() && all > 0 && !waits.everywhere; ++device) {
    const bool waits_itself = std::find(waiting.begin(), waiting.end(), device) != waiting.end();
    if (waits_itself || idle_peers[device] || !elsewhere(device)) continue;
    const double part = static_cast<double>(idle_within(devices[device].slices, times)) / static_cast<double>(all);
    if (part >= limits[Threshold::kMajority]) return true;
  }
  return false;
}

}  // namespace headroom::diagnose
