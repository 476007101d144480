// SPDX-License-Identifier: Apache-2.0
#include "analyze/job.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace headroom {

namespace {

const Track& track_of(const Recording& recording, SourceId source) {
  return recording.tracks[static_cast<std::size_t>(source)];
}
const Source& source_of(const Recording& recording, SourceId source) {
  return recording.sources[static_cast<std::size_t>(source)];
}

Nanos median_spacing(const Recording& recording, const std::vector<SourceId>& sources, Nanos fallback) {
  std::vector<Nanos> gaps;
  for (const SourceId id : sources) {
    const auto& at = track_of(recording, id).at;
    for (std::size_t i = 1; i < at.size(); ++i) gaps.push_back(at[i] - at[i - 1]);
  }
  if (gaps.empty()) return fallback;
  const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  return std::max<Nanos>(*middle, kMillisecond);
}

// pids are reused: the process with this start time, else the one that lived when the context was seen.
std::optional<SourceId> match_process(const Recording& recording, const std::multimap<std::int64_t, SourceId>& by_pid,
                                      const GpuContext& context, Nanos seen) {
  std::optional<SourceId> best;
  for (auto [entry, last] = by_pid.equal_range(context.pid); entry != last; ++entry) {
    const Process process = process_of(source_of(recording, entry->second));
    if (context.start && process.start == *context.start) return entry->second;
    if (process.start <= seen && (!process.end || *process.end >= seen)) best = entry->second;
  }
  return best;
}

ContextUse use_of(const Recording& recording, SourceId id, const std::multimap<std::int64_t, SourceId>& by_pid,
                  Nanos listing) {
  const Source& source = source_of(recording, id);
  const GpuContext context = context_of(source);
  const auto& seen = track_of(recording, id).at;
  ContextUse use;
  use.device = source.parent;
  use.source = id;
  use.pid = context.pid;
  use.kind = context.kind;
  use.first_seen = seen.front();
  use.last_seen = seen.back();
  use.process = match_process(recording, by_pid, context, use.first_seen);
  use.held_from = std::max(recording.meta.start, use.first_seen - listing);
  use.begin = use.held_from;
  use.end = std::min(recording.meta.end, use.last_seen + listing);
  if (use.process) {
    const Process process = process_of(source_of(recording, *use.process));
    use.ours = process.in_job;
    use.begin = std::min(use.begin, std::max(recording.meta.start, process.start));
    use.held_from = std::max(use.held_from, use.begin);
    if (process.end && *process.end <= use.last_seen + 2 * listing)
      use.end = std::max(use.last_seen, std::min(recording.meta.end, *process.end));
  }
  return use;
}

std::vector<std::vector<SourceId>> children_of(const Recording& recording) {
  std::vector<std::vector<SourceId>> children(recording.sources.size());
  for (const SourceId id : recording.all(SourceKind::kProcess))
    if (const SourceId parent = source_of(recording, id).parent; parent != kNoSource)
      children[static_cast<std::size_t>(parent)].push_back(id);
  return children;
}

// A process that got away from its attempt's tree (a double fork) belongs to the only attempt that had the device as
// long as the process was seen there; -1 where there were several.
std::int32_t only_attempt(const BatchView& batch, const ContextUse& use, Nanos listing) {
  std::int32_t only = -1;
  for (std::size_t i = 0; i < batch.attempts.size(); ++i) {
    const TaskAttempt& attempt = batch.attempts[i];
    if (attempt.begin > use.first_seen) break;
    if (attempt.end < use.last_seen - listing ||
        std::find(attempt.devices.begin(), attempt.devices.end(), use.device) == attempt.devices.end())
      continue;
    if (only >= 0) return -1;
    only = static_cast<std::int32_t>(i);
  }
  return only;
}

// The launcher knows to the millisecond when an attempt began and ended; the sampling finds it out later.
void place_in_batch(const Recording& recording, const BatchView& batch, Nanos listing, ContextUse& use) {
  if (!use.ours || !use.process) return;
  use.attempt = batch.attempt_of_process[static_cast<std::size_t>(*use.process)];
  if (use.attempt < 0) use.attempt = only_attempt(batch, use, listing);
  if (use.attempt < 0) return;
  const TaskAttempt& attempt = batch.attempts[static_cast<std::size_t>(use.attempt)];
  const bool first_process = process_of(source_of(recording, *use.process)).pid == attempt.pid;
  use.begin = first_process ? attempt.begin : std::clamp(use.begin, attempt.begin, use.first_seen);
  use.held_from = std::max(use.held_from, use.begin);
  use.end = std::max(use.last_seen, first_process ? attempt.end : std::min(use.end, attempt.end));
}

// Inside a container the driver lists processes by numbers that mean nothing there: none of them can be found, although
// attempts ran long enough to be listed. Then the lists say nothing about whose kernels ran.
bool strange_pids(const JobView& view) {
  constexpr Nanos kLookups = 4;
  const auto& attempts = view.batch.attempts;
  return !view.uses.empty() &&
         std::none_of(view.uses.begin(), view.uses.end(), [](const ContextUse& use) { return use.process; }) &&
         std::any_of(attempts.begin(), attempts.end(), [&](const TaskAttempt& attempt) {
           return !attempt.devices.empty() && attempt.end - attempt.begin >= kLookups * view.listing_interval;
         });
}

}  // namespace

JobView job_view(const Recording& recording) {
  JobView view;
  view.batch = batch_view(recording);
  view.has_job = view.batch.present;
  view.children = children_of(recording);
  view.holds.assign(recording.sources.size(), false);
  std::multimap<std::int64_t, SourceId> by_pid;
  for (const SourceId id : recording.all(SourceKind::kProcess)) {
    const Process process = process_of(source_of(recording, id));
    by_pid.emplace(process.pid, id);
    view.has_job |= process.in_job;
    view.has_host |= process.in_job && track_of(recording, id).at.size() > 1;
  }
  const auto contexts = recording.all(SourceKind::kGpuProcess);
  for (const SourceId gpu : recording.all(SourceKind::kGpu))
    view.has_contexts |= track_of(recording, gpu).find(Metric::kComputeProcesses) != nullptr;
  view.has_contexts |= !contexts.empty();
  view.listing_interval = median_spacing(recording, contexts, kSecond);
  for (const SourceId id : contexts) {
    if (track_of(recording, id).at.empty()) continue;
    ContextUse use = use_of(recording, id, by_pid, view.listing_interval);
    if (!view.has_job) use.ours = true;
    if (view.batch.present) place_in_batch(recording, view.batch, view.listing_interval, use);
    if (use.process && use.kind != ContextKind::kGraphics) view.holds[static_cast<std::size_t>(*use.process)] = true;
    (use.kind == ContextKind::kGraphics ? view.graphics : view.uses).push_back(use);
  }
  if (strange_pids(view)) {
    view.uses.clear();
    view.has_contexts = false;
  }
  std::stable_sort(view.uses.begin(), view.uses.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return view;
}

namespace {

// Growth of a counter from one row to the next; 0 where either is absent or the counter went backwards.
double growth(const Column* column, std::size_t row) {
  if (!column || !column->has(row) || !column->has(row - 1)) return 0;
  const std::int64_t delta = column->values[row] - column->values[row - 1];
  return delta > 0 ? static_cast<double>(delta) : 0;
}

// A newer writer may know more of them, and a file may say anything.
WaitChannel wait_channel_of(std::int64_t stored) {
  const bool known = stored >= 0 && stored <= static_cast<std::int64_t>(WaitChannel::kUnknown);
  return known ? static_cast<WaitChannel>(stored) : WaitChannel::kUnknown;
}

}  // namespace

std::vector<Activity> activities(const Recording& recording, SourceId process) {
  const Track& track = track_of(recording, process);
  const Column *user = track.find(Metric::kCpuUser), *system = track.find(Metric::kCpuSystem),
               *main_cpu = track.find(Metric::kMainCpu), *delay = track.find(Metric::kRunDelay),
               *io = track.find(Metric::kIoDelay), *read = track.find(Metric::kReadBytes),
               *write = track.find(Metric::kWriteBytes), *state = track.find(Metric::kProcessState),
               *wait = track.find(Metric::kWaitChannel);
  std::vector<Activity> list;
  for (std::size_t row = 1; row < track.at.size(); ++row) {
    Activity activity{track.at[row - 1], track.at[row]};
    const auto length = static_cast<double>(activity.end - activity.begin);
    if (length <= 0) continue;
    activity.cpu = (growth(user, row) + growth(system, row)) / length;
    if (main_cpu && main_cpu->has(row) && main_cpu->has(row - 1)) activity.main_cpu = growth(main_cpu, row) / length;
    activity.run_delay = std::min(1.0, growth(delay, row) / length);
    activity.io_delay = std::min(1.0, growth(io, row) / length);
    activity.read_bytes_per_second = growth(read, row) / seconds(activity.end - activity.begin);
    activity.write_bytes_per_second = growth(write, row) / seconds(activity.end - activity.begin);
    if (state && state->has(row)) activity.state = static_cast<char>(state->values[row]);
    if (wait && wait->has(row)) activity.wait = wait_channel_of(wait->values[row]);
    list.push_back(activity);
  }
  return list;
}

std::vector<SourceId> descendants(const JobView& job, SourceId process) {
  std::vector<SourceId> found, open{process};
  while (!open.empty()) {
    const SourceId parent = open.back();
    open.pop_back();
    for (const SourceId id : job.children[static_cast<std::size_t>(parent)]) {
      if (id == process) continue;  // a damaged file may hold a circle
      found.push_back(id);
      open.push_back(id);
    }
  }
  return found;
}

}  // namespace headroom
