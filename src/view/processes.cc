// SPDX-License-Identifier: Apache-2.0
#include "view/processes.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analyze/ranks.h"
#include "base/secrets.h"
#include "model/entities.h"
#include "model/parts.h"

namespace headroom::view {

namespace {

struct Found {
  Process process;
  SourceId source = kNoSource;
  std::size_t part = 0;  // of the recording: numbers of processes are those of one machine
  double cpu_seconds = 0;
};

std::optional<double> cpu_at(const Track& track, const Column* user, const Column* system, std::size_t row) {
  if (!user || !user->has(row)) return std::nullopt;
  const double in_kernel = system && system->has(row) ? to_unit(Metric::kCpuSystem, system->values[row]) : 0;
  return row < track.at.size() ? std::optional(to_unit(Metric::kCpuUser, user->values[row]) + in_kernel) : std::nullopt;
}

// Means over the view, and between the last two readings in it.
void add_cpu(const Track& track, Nanos begin, Nanos end, Found& found) {
  const Column *user = track.find(Metric::kCpuUser), *system = track.find(Metric::kCpuSystem);
  const auto row_at = [&](auto place) { return static_cast<std::size_t>(place - track.at.begin()); };
  const std::size_t first = row_at(std::lower_bound(track.at.begin(), track.at.end(), begin));
  const std::size_t past = row_at(std::upper_bound(track.at.begin(), track.at.end(), end));
  if (first >= past) return;
  const auto last = cpu_at(track, user, system, past - 1);
  if (!last) return;
  const bool born_here = found.process.begin >= begin;
  const Nanos from = born_here ? found.process.begin : track.at[first];
  const auto before = born_here ? std::optional(0.0) : cpu_at(track, user, system, first);
  const Nanos span = track.at[past - 1] - from;
  if (before && span > 0) {
    found.cpu_seconds = *last - *before;
    found.process.cores = found.cpu_seconds / seconds(span);
  }
  if (past - first < 2) return;
  const auto previous = cpu_at(track, user, system, past - 2);
  if (previous) found.process.cores_now = (*last - *previous) / seconds(track.at[past - 1] - track.at[past - 2]);
}

std::optional<std::int64_t> last_of(const Track& track, Metric metric, Nanos end) {
  const Column* column = track.find(metric);
  if (!column) return std::nullopt;
  for (auto row = track.at.size(); row-- > 0;)
    if (track.at[row] <= end && column->has(row)) return column->values[row];
  return std::nullopt;
}

bool lives(const Process& process, Nanos begin, Nanos end) {
  return process.begin < end && process.end.value_or(end) > begin;
}

std::vector<Found> processes_of(const Recording& recording, const View& view, const std::vector<std::size_t>& parts) {
  std::vector<Found> all;
  std::vector<std::string> names;  // of the parts
  for (const SourceId id : recording.all(SourceKind::kPart))
    names.push_back(recording.sources[static_cast<std::size_t>(id)].key + ": ");
  for (const SourceId id : recording.all(SourceKind::kProcess)) {
    const headroom::Process facts = process_of(recording.sources[static_cast<std::size_t>(id)]);
    Found found;
    found.part = parts[static_cast<std::size_t>(id)];
    found.source = id;
    found.process.pid = facts.pid;
    found.process.name = (names.empty() ? "" : names[found.part]) + facts.comm;
    found.process.command = hide_secrets(std::string_view(facts.cmdline));
    found.process.in_job = facts.in_job;
    found.process.begin = facts.start;
    found.process.end = facts.end;
    if (!lives(found.process, view.begin, view.end)) continue;
    const Track& track = recording.tracks[static_cast<std::size_t>(id)];
    add_cpu(track, view.begin, view.end, found);
    found.process.rss_bytes = last_of(track, Metric::kRss, view.end);
    const auto channel = last_of(track, Metric::kWaitChannel, view.end);
    if (channel && *channel >= 0 && *channel <= static_cast<std::int64_t>(WaitChannel::kUnknown))
      found.process.waits_in = static_cast<WaitChannel>(*channel);
    all.push_back(std::move(found));
  }
  return all;
}

// The memory that contexts of processes hold. A context of which the host side knows no process is one of its own.
void add_contexts(const Recording& recording, const GpuSources& gpus, const View& view,
                  const std::vector<std::size_t>& parts, std::vector<Found>& all) {
  std::multimap<std::int64_t, std::size_t> of_pid;
  for (std::size_t i = 0; i < all.size(); ++i) of_pid.emplace(all[i].process.pid, i);
  for (const SourceId id : recording.all(SourceKind::kGpuProcess)) {
    const Source& source = recording.sources[static_cast<std::size_t>(id)];
    const auto gpu = position_of(gpus, source.parent);
    const std::size_t part = parts[static_cast<std::size_t>(id)];
    const Track& track = recording.tracks[static_cast<std::size_t>(id)];
    const auto first = std::lower_bound(track.at.begin(), track.at.end(), view.begin);
    if (!gpu || first == track.at.end() || *first > view.end) continue;
    const GpuContext context = context_of(source);
    const auto [from, to] = of_pid.equal_range(context.pid);
    auto owner = std::find_if(from, to, [&](const auto& one) {
      const Process& process = all[one.second].process;
      if (all[one.second].part != part) return false;
      return !context.start || *context.start == process.begin || process.end.value_or(view.end) >= *first;
    });
    if (owner == to) {
      Found unknown;
      unknown.part = part;
      unknown.process.pid = context.pid;
      unknown.process.begin = context.start.value_or(*first);
      all.push_back(std::move(unknown));
      owner = of_pid.emplace(context.pid, all.size() - 1);
    }
    Process::OnGpu on{.gpu = *gpu, .graphics = context.kind == ContextKind::kGraphics};
    if (const Column* memory = track.find(Metric::kProcessGpuMemory))
      for (auto row = static_cast<std::size_t>(first - track.at.begin());
           row < track.at.size() && track.at[row] <= view.end; ++row)
        if (memory->has(row)) {
          on.memory_bytes = memory->values[row];
          on.peak_memory_bytes = std::max(on.peak_memory_bytes.value_or(0), memory->values[row]);
        }
    if (const auto util = last_of(track, Metric::kProcessSmUtil, view.end))
      on.sm_util = to_unit(Metric::kProcessSmUtil, *util);
    all[owner->second].process.gpus.push_back(on);
  }
}

void add_ranks(const Recording& recording, std::vector<Found>& all) {
  std::map<std::size_t, std::set<SourceId>> of_part;
  for (const Found& found : all)
    if (!found.process.gpus.empty() && found.source != kNoSource) of_part[found.part].insert(found.source);
  std::map<SourceId, std::int64_t> ranks;
  for (const auto& [part, processes] : of_part) ranks.merge(ranks_of(recording, processes));
  for (Found& found : all)
    if (const auto rank = ranks.find(found.source); rank != ranks.end()) found.process.rank = rank->second;
}

// The account in which the GPUs of a process last were.
void add_doing(const Explanation& explanation, std::vector<Process>& processes) {
  const auto host_of = [&](std::size_t device) -> const std::string& {
    return explanation.ledger.devices[device].host;
  };
  std::map<std::string, std::map<std::int64_t, const Slice*>> hosts;  // a number is of one process of one machine
  for (std::size_t device = 0; device < explanation.slices.size(); ++device) {
    auto& last = hosts[host_of(device)];
    for (const Slice& slice : explanation.slices[device]) {
      if (slice.pid == 0) continue;
      const Slice*& known = last[slice.pid];
      if (!known || slice.end >= known->end) known = &slice;
    }
  }
  for (Process& process : processes) {
    if (process.gpus.empty() && !explanation.parts.empty()) continue;
    const auto& last = hosts[process.gpus.empty() ? "" : host_of(process.gpus.front().gpu)];
    const auto known = last.find(process.pid);
    if (known == last.end() || !lives(process, known->second->begin, known->second->end)) continue;
    process.account = known->second->account;
    process.phase = known->second->phase;
    process.where = known->second->where;
  }
}

}  // namespace

std::optional<std::size_t> position_of(const GpuSources& gpus, SourceId gpu) {
  for (std::size_t position = 0; position < gpus.size(); ++position)
    if (std::find(gpus[position].begin(), gpus[position].end(), gpu) != gpus[position].end()) return position;
  return std::nullopt;
}

void add_processes(const Recording& recording, const Explanation& explanation, const GpuSources& gpus, std::size_t most,
                   View& view) {
  const std::vector<std::size_t> parts = parts_of_sources(recording);
  std::vector<Found> all = processes_of(recording, view, parts);
  add_contexts(recording, gpus, view, parts, all);
  add_ranks(recording, all);
  const auto rank = [](const Found& f) {
    return std::tuple(f.process.gpus.empty(), -f.cpu_seconds, f.process.begin, f.process.pid);
  };
  std::stable_sort(all.begin(), all.end(), [&](const Found& a, const Found& b) { return rank(a) < rank(b); });
  if (all.size() > most) {
    view.processes_left_out = all.size() - most;
    all.resize(most);
  }
  for (Found& found : all) view.processes.push_back(std::move(found.process));
  add_doing(explanation, view.processes);
}

}  // namespace headroom::view
