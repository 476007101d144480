// SPDX-License-Identifier: Apache-2.0
#include "analyze/job.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analyze/ends.h"
#include "analyze/ranks.h"
#include "analyze/utilisation.h"
#include "analyze/waits.h"
#include "base/median.h"
#include "base/strings.h"
#include "model/cpu_list.h"
#include "model/python_tracker.h"

namespace headroom {

namespace {

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
  return std::max<Nanos>(median(std::move(gaps)), kMillisecond);
}

// pids are reused: the process with this start time, else the one that lived when the context was seen; of one that
// ended as the list was read, the driver may tell a moment more.
std::optional<SourceId> match_process(const Recording& recording, const std::multimap<std::int64_t, SourceId>& by_pid,
                                      const GpuContext& context, Nanos seen) {
  constexpr Nanos kEnding = kSecond;
  std::optional<SourceId> best, ended;
  for (auto [entry, last] = by_pid.equal_range(context.pid); entry != last; ++entry) {
    const Process process = process_of(source_of(recording, entry->second));
    if (context.start && process.start == *context.start) return entry->second;
    if (process.start > seen) continue;
    if (!process.end || *process.end >= seen) best = entry->second;
    if (process.end && *process.end >= seen - kEnding && !context.start) ended = entry->second;
  }
  return best ? best : ended;
}

// It was not on the list yet when that was read last before `seen`; without such a reading it always may have been.
Nanos not_listed_until(const Recording& recording, const std::vector<Nanos>& looks, Nanos seen, Nanos listing) {
  if (looks.empty()) return std::max(recording.meta.start, seen - listing);
  const auto first = std::lower_bound(looks.begin(), looks.end(), seen);
  return first == looks.begin() ? recording.meta.start : std::max(recording.meta.start, *std::prev(first));
}

// Programs below a server of NVIDIA's MPS have contexts of its; which files they have open was not measured.
bool has_mps(const Recording& recording) {
  const auto contexts = recording.all(SourceKind::kGpuProcess);
  return std::any_of(contexts.begin(), contexts.end(),
                     [&](SourceId id) { return context_of(source_of(recording, id)).kind == ContextKind::kMps; });
}

ContextUse use_of(const Recording& recording, SourceId id, const std::multimap<std::int64_t, SourceId>& by_pid,
                  const std::vector<Nanos>& looks, Nanos listing) {
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
  use.held_from = not_listed_until(recording, looks, use.first_seen, listing);
  use.begin = use.held_from;
  use.end = std::min(recording.meta.end, use.last_seen + listing);
  use.from_before = use.first_seen <= (looks.empty() ? recording.meta.start : looks.front());
  if (use.process) {
    const Process process = process_of(source_of(recording, *use.process));
    use.from_before = use.from_before && process.start < recording.meta.start;
    use.ours = process.in_job;
    use.begin = std::min(use.first_seen, std::max(recording.meta.start, process.start));
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

std::set<SourceId> trackers_of(const Recording& recording) {
  std::set<SourceId> trackers;
  for (const SourceId id : recording.all(SourceKind::kProcess)) {
    const auto& attrs = source_of(recording, id).attrs;
    const auto command = attrs.find("cmdline");
    if (command != attrs.end() && !python_tracker_in(command->second).empty()) trackers.insert(id);
  }
  return trackers;
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
  use.begin = first_process ? attempt.begin : std::min(std::max(use.begin, attempt.begin), use.first_seen);
  use.held_from = std::max(use.held_from, use.begin);
  use.end = std::max(use.last_seen, first_process ? attempt.end : std::min(use.end, attempt.end));
}

bool kernels_ran(const Recording& recording, const Thresholds& limits) {
  const double span = static_cast<double>(recording.meta.end - recording.meta.start);
  for (const SourceId gpu : recording.all(SourceKind::kGpu)) {
    if (device_of(source_of(recording, gpu)).given == false) continue;
    Nanos busy = 0;
    for (const UtilSample& sample : util_samples(recording, gpu, limits)) busy += busy_ns(sample);
    if (static_cast<double>(busy) >= limits[Threshold::kPeerWorks] * span) return true;
  }
  return false;
}

// A batch says itself what its tasks are at.
bool no_kernel_yet(const Recording& recording, const JobView& view, const Thresholds& limits) {
  if (!goes_on(recording.meta) || view.batch.present) return false;
  std::set<SourceId> held;
  for (const ContextUse& use : view.uses)
    if (use.ours) held.insert(use.device);
  const auto gpus = recording.all(SourceKind::kGpu);  // what a damaged file calls one may be none
  return std::none_of(gpus.begin(), gpus.end(), [&](SourceId gpu) {
    if (!held.contains(gpu)) return false;
    const auto samples = util_samples(recording, gpu, limits);
    return std::any_of(samples.begin(), samples.end(), [](const UtilSample& one) { return busy_ns(one) > 0; });
  });
}

// A log may say how many processes held a GPU without saying which: then it is not known when nobody did.
bool counts_without_names(const Recording& recording) {
  for (const SourceId gpu : recording.all(SourceKind::kGpu)) {
    const Column* count = track_of(recording, gpu).find(Metric::kComputeProcesses);
    for (std::size_t row = 0; count && row < count->values.size(); ++row)
      if (count->has(row) && count->values[row] > 0) return true;
  }
  return false;
}

// In a container, on WSL2 or under hidepid the driver lists nothing, or numbers that mean nothing here: none of the
// processes it lists can be found, although kernels ran. Then the lists say nothing about whose they were. Of a batch
// some attempt must have run long enough to be listed.
bool owners_unknown(const Recording& recording, const JobView& view, const Thresholds& limits) {
  if (!view.has_job || !view.has_contexts) return false;
  const auto found = [](const ContextUse& use) { return use.process.has_value(); };
  if (std::any_of(view.uses.begin(), view.uses.end(), found) ||
      std::any_of(view.graphics.begin(), view.graphics.end(), found))
    return false;
  const double listed_after = limits[Threshold::kListings] * static_cast<double>(view.listing_interval);
  const auto& attempts = view.batch.attempts;
  const bool listable = std::any_of(attempts.begin(), attempts.end(), [&](const TaskAttempt& attempt) {
    return !attempt.devices.empty() && static_cast<double>(attempt.end - attempt.begin) >= listed_after;
  });
  if (view.batch.present && !listable) return false;
  return (view.batch.present && !view.uses.empty()) || kernels_ran(recording, limits);
}

std::optional<std::int64_t> value_at(const Column* column, std::size_t row) {
  return column && column->has(row) ? std::optional(column->values[row]) : std::nullopt;
}

// Growth of a counter from one row to the next, up to the first row from 0; nothing where it was not read.
std::optional<double> grown(const Column* column, std::size_t row) {
  const auto before = row > 0 ? value_at(column, row - 1) : 0, now = value_at(column, row);
  if (!before || !now) return std::nullopt;
  return static_cast<double>(std::max<std::int64_t>(0, *now - *before));
}

double growth(const Column* column, std::size_t row) { return grown(column, row).value_or(0); }

// A file may hold any number: of a newer version, or of nobody.
WaitChannel wait_channel_of(std::int64_t stored) {
  const bool known = stored >= 0 && stored <= static_cast<std::int64_t>(WaitChannel::kUnknown);
  return known ? static_cast<WaitChannel>(stored) : WaitChannel::kUnknown;
}

}  // namespace

namespace {

using Rates = std::vector<std::optional<double>>;

// Growth per second of a counter that need not be read in every row: of each row, since the row before it. Empty where
// there is no such counter.
Rates rates(const Track& track, Metric metric) {
  const Column* column = track.find(metric);
  if (!column) return {};
  Rates list(track.at.size());
  std::optional<std::size_t> before;
  for (std::size_t row = 0; row < track.at.size(); ++row) {
    if (!column->has(row)) continue;
    if (before && track.at[row] > track.at[*before]) {
      const auto grown = static_cast<double>(std::max<std::int64_t>(0, column->values[row] - column->values[*before]));
      const double rate = grown / seconds(track.at[row] - track.at[*before]);
      for (std::size_t i = *before + 1; i <= row; ++i) list[i] = rate;
    }
    before = row;
  }
  return list;
}

std::optional<double> rate_at(const Rates& rates, std::size_t row) { return rates.empty() ? std::nullopt : rates[row]; }

}  // namespace

namespace {

double not_running(const Activity& activity) {
  return std::max(0.0, 1 - activity.main_cpu.value_or(activity.cpu) - activity.run_delay);
}

// The scheduler counts a wait for a core when it is over: what is longer than the last of these was in those before it,
// too.
void spread_the_wait(double waited, std::vector<Activity>& list) {
  constexpr std::size_t kFurthest = 64;  // looks: a file may hold any number
  const std::size_t first = list.size() - std::min(list.size(), kFurthest);
  for (std::size_t i = list.size(); i-- > first && waited > 0;) {
    Activity& activity = list[i];
    const auto length = static_cast<double>(activity.end - activity.begin);
    const double here = std::min(waited / length, not_running(activity));
    activity.run_delay += here;
    waited -= here * length;
  }
}

// What is counted of a process, row by row.
struct CountedRows {
  const Track& track;
  const Column *user = track.find(Metric::kCpuUser), *system = track.find(Metric::kCpuSystem),
               *main_cpu = track.find(Metric::kMainCpu), *delay = track.find(Metric::kRunDelay),
               *io = track.find(Metric::kIoDelay), *state = track.find(Metric::kProcessState),
               *wait = track.find(Metric::kWaitChannel), *children = track.find(Metric::kChildrenCpu),
               *threads = track.find(Metric::kThreads);
  Rates read = rates(track, Metric::kReadBytes), written = rates(track, Metric::kWriteBytes),
        passed = rates(track, Metric::kReadChars), memory = rates(track, Metric::kRss),
        faults = rates(track, Metric::kMajorFaults);

  // From `begin` to the row; the wait for a core only where it fits into that.
  [[nodiscard]] Activity activity(Nanos begin, std::size_t row) const {
    Activity activity{begin, track.at[row]};
    const auto length = static_cast<double>(activity.end - activity.begin);
    activity.cpu = (growth(user, row) + growth(system, row)) / length;
    if (const auto main = grown(main_cpu, row)) activity.main_cpu = *main / length;
    if (const double waited = growth(delay, row); waited <= length) activity.run_delay = waited / length;
    if (const auto blocked = grown(io, row)) activity.io_delay = std::min(1.0, *blocked / length);
    activity.unseen_cpu = growth(children, row) / length;
    add_bytes(row, activity);
    activity.major_faults_per_second = rate_at(faults, row);
    if (const auto count = value_at(threads, row)) activity.threads = *count;
    if (const auto letter = value_at(state, row)) activity.state = static_cast<char>(*letter);
    if (const auto channel = value_at(wait, row)) activity.wait = wait_channel_of(*channel);
    return activity;
  }

 private:
  void add_bytes(std::size_t row, Activity& activity) const {
    // What a child that was waited for had read and written in all its life is counted here, too.
    const bool reaped = growth(children, row) > 0;
    if (!reaped) {
      activity.read_bytes_per_second = rate_at(read, row);
      activity.write_bytes_per_second = rate_at(written, row);
      activity.passed_bytes_per_second = rate_at(passed, row);
    }
    for (const auto& loaded : {activity.passed_bytes_per_second, rate_at(memory, row)})
      if (loaded) activity.loaded_bytes_per_second = activity.loaded_bytes_per_second.value_or(0) + *loaded;
  }
};

// Of a process that started then.
std::vector<Activity> activities_since(const Recording& recording, SourceId process, Nanos start) {
  const Track& track = track_of(recording, process);
  std::vector<Activity> list;
  // Of a process that was born while somebody watched, all that it did is known: its counters began at 0.
  const bool born = start >= recording.meta.start && !track.at.empty() && start < track.at.front();
  if (track.at.size() < (born ? 1U : 2U)) return list;
  const CountedRows counted{track};
  list.reserve(track.at.size());
  for (std::size_t row = born ? 0 : 1; row < track.at.size(); ++row) {
    const Nanos begin = row > 0 ? track.at[row - 1] : start;
    const auto length = static_cast<double>(track.at[row] - begin);
    if (length <= 0) continue;
    list.push_back(counted.activity(begin, row));
    if (const double waited = growth(counted.delay, row); waited > length) spread_the_wait(waited, list);
  }
  return list;
}

// CPU that a process and what it had waited for had used at its last row; 0 where that was not counted.
double used_in_all(const Track& track) {
  if (track.at.empty()) return 0;
  const std::size_t last = track.at.size() - 1;
  const auto user = value_at(track.find(Metric::kCpuUser), last),
             system = value_at(track.find(Metric::kCpuSystem), last);
  if (!user || !system) return 0;
  const auto below = value_at(track.find(Metric::kChildrenCpu), last).value_or(0);
  return static_cast<double>(*user) + static_cast<double>(*system) + static_cast<double>(below);
}

// A child of which so much was seen is waited for around the time [last, end] at which it is found gone.
void leave_out(double seen, Nanos last, Nanos end, std::vector<Activity>& parent) {
  for (Activity& a : parent) {
    if (a.end < last) continue;
    if (a.begin > end || seen <= 0) break;
    const auto length = static_cast<double>(a.end - a.begin);
    const double taken = std::min(seen, a.unseen_cpu * length);
    a.unseen_cpu -= taken / length;
    seen -= taken;
  }
}

// What ended children had used was counted in rows of their own, where they had any.
void leave_out_the_seen(const Recording& recording, const std::vector<std::optional<Nanos>>& ends, JobView& view) {
  for (std::size_t parent = 0; parent < view.did.size(); ++parent)
    for (const SourceId child : view.children[parent]) {
      const Track& track = track_of(recording, child);
      const std::optional<Nanos> end = ends[static_cast<std::size_t>(child)];
      if (end && !track.at.empty()) leave_out(used_in_all(track), track.at.back(), *end, view.did[parent]);
    }
}

std::vector<MachineActivity> machine_activities(const Track& track) {
  std::vector<MachineActivity> list;
  const Column *busy = track.find(Metric::kHostCpuBusy), *pressure = track.find(Metric::kPsiIoSome),
               *memory = track.find(Metric::kPsiMemorySome);
  const Rates swapped = rates(track, Metric::kHostSwapIn);
  list.reserve(track.at.size());
  for (std::size_t row = 1; row < track.at.size(); ++row) {
    MachineActivity activity{.begin = track.at[row - 1], .end = track.at[row]};
    const auto length = static_cast<double>(activity.end - activity.begin);
    if (length <= 0) continue;
    if (const auto used = grown(busy, row)) activity.busy_cores = *used / length;
    if (const auto waited = grown(pressure, row)) activity.io_pressure = std::min(1.0, *waited / length);
    if (const auto waited = grown(memory, row)) activity.memory_pressure = std::min(1.0, *waited / length);
    if (!swapped.empty()) activity.swapped_in_pages_per_second = swapped[row];
    list.push_back(activity);
  }
  return list;
}

// What was available at most: files that are kept count as available. A cgroup's limit is the limit of its files, too.
std::optional<std::int64_t> memory_for_files(const Recording& recording, const Track& host) {
  const Column* available = host.find(Metric::kHostMemoryAvailable);
  std::optional<std::int64_t> most;
  for (std::size_t row = 0; row < host.at.size(); ++row)
    if (available && available->has(row)) most = std::max(most.value_or(0), available->values[row]);
  for (const SourceId group : recording.all(SourceKind::kCgroup)) {
    const Attrs& attrs = source_of(recording, group).attrs;
    const auto limit = attrs.find("memory_max_bytes");
    const auto bytes = limit == attrs.end() ? std::nullopt : parse_number<std::int64_t>(limit->second);
    if (most && bytes) most = std::min(*most, *bytes);
  }
  return most;
}

void add_machine(const Recording& recording, JobView& view) {
  const auto groups = recording.all(SourceKind::kCgroup);
  if (groups.size() == 1 && track_of(recording, groups.front()).find(Metric::kPsiMemorySome))
    view.group = machine_activities(track_of(recording, groups.front()));
  const auto hosts = recording.all(SourceKind::kHost);
  if (hosts.empty()) return;
  const Host host = host_of(source_of(recording, hosts.front()));
  view.usable_cores = host.cores_usable.value_or(host.cores);
  view.machine_cores = host.cores;
  view.machine = machine_activities(track_of(recording, hosts.front()));
  view.memory_for_files = memory_for_files(recording, track_of(recording, hosts.front()));
}

}  // namespace

std::vector<Activity> activities(const Recording& recording, SourceId process) {
  return activities_since(recording, process, process_of(source_of(recording, process)).start);
}

namespace {

// A task's own process, or one that it has started: so short that no look at the tree of processes found it, while the
// driver's list had it.
class ProcessesOfTasks {
 public:
  explicit ProcessesOfTasks(const BatchView& batch) {
    for (const TaskAttempt& attempt : batch.attempts) by_pid_.emplace(attempt.pid, &attempt);
  }
  [[nodiscard]] bool have(const Process& process) const {
    return began(process.pid, process.start) || began(process.ppid, process.start);
  }

 private:
  [[nodiscard]] bool began(std::int64_t pid, Nanos start) const {
    constexpr Nanos kTicks = 100 * kMillisecond;  // a start is told in ticks, and from below
    const auto [first, last] = by_pid_.equal_range(pid);
    return pid > 0 && std::any_of(first, last, [&](const auto& one) {
             return start >= one.second->begin - kTicks && start <= one.second->end;
           });
  }
  std::multimap<std::int64_t, const TaskAttempt*> by_pid_;
};

// Who is of the job, what each did, and how far it is from a GPU. `ends`: of the sources that are processes.
void add_processes(const Recording& recording, JobView& view, std::multimap<std::int64_t, SourceId>& by_pid,
                   std::vector<std::optional<Nanos>>& ends) {
  const ProcessesOfTasks of_tasks(view.batch);
  view.has_job = view.batch.present;
  view.in_job.assign(recording.sources.size(), false);
  view.no_gpu_until.assign(recording.sources.size(), recording.meta.start);
  view.opened_gpu.assign(recording.sources.size(), false);
  view.did.resize(recording.sources.size());
  const bool with_mps = has_mps(recording);
  ends.resize(recording.sources.size());
  for (const SourceId id : recording.all(SourceKind::kProcess)) {
    Process process = process_of(source_of(recording, id));
    process.in_job = process.in_job || of_tasks.have(process);
    by_pid.emplace(process.pid, id);
    view.has_job |= process.in_job;
    view.in_job[static_cast<std::size_t>(id)] = process.in_job;
    ends[static_cast<std::size_t>(id)] = process.end;
    view.has_host |= process.in_job && track_of(recording, id).at.size() > 1;
    view.did[static_cast<std::size_t>(id)] = activities_since(recording, id, process.start);
    if (with_mps) continue;
    if (process.no_gpu_until)
      view.no_gpu_until[static_cast<std::size_t>(id)] = std::max(recording.meta.start, *process.no_gpu_until);
    view.opened_gpu[static_cast<std::size_t>(id)] = process.gpu_open.has_value();
  }
}

}  // namespace

namespace {

// What the processes on the GPUs and those that they started may run on, where that is less than what the job's first
// process may: some bind themselves. Of one that was never asked nothing is known.
void narrow_cores(const Recording& recording, JobView& view) {
  constexpr Nanos kAsked = 5 * kSecond;  // whoever lived for so long was
  if (recording.all(SourceKind::kHost).size() != 1) return;
  CpuSet cpus;
  std::set<SourceId> counted;
  const auto add_those_of = [&](SourceId id, bool always) {
    if (!counted.insert(id).second) return true;
    const Source& source = source_of(recording, id);
    const auto list = cpus_of(attr(source, "cpus_allowed"));
    if (list) add(cpus, *list);
    const Process process = process_of(source);
    return list || (!always && process.end.value_or(recording.meta.end) - process.start < kAsked);
  };
  for (const ContextUse& use : view.uses)
    if (use.ours && (!use.process || !add_those_of(*use.process, true))) return;
  for (const SourceId owner : std::set<SourceId>(counted))
    for (const SourceId id : descendants(view, owner))
      if (!add_those_of(id, false)) return;
  if (!cpus.empty()) view.usable_cores = std::min(view.usable_cores, static_cast<double>(count(cpus)));
}

// Whether the driver's lists say who holds a device.
bool knows_contexts(const Recording& recording, bool has_job) {
  if (!recording.all(SourceKind::kGpuProcess).empty()) return true;
  const auto gpus = recording.all(SourceKind::kGpu);
  const bool counted = std::any_of(gpus.begin(), gpus.end(), [&](SourceId gpu) {
    return track_of(recording, gpu).find(Metric::kComputeProcesses) != nullptr;
  });
  return counted && (has_job || !counts_without_names(recording));
}

// `looks`: when the list of each device was read.
void add_uses(const Recording& recording, const std::multimap<std::int64_t, SourceId>& by_pid,
              std::map<SourceId, std::vector<Nanos>>& looks, JobView& view) {
  for (const SourceId id : recording.all(SourceKind::kGpuProcess)) {
    if (track_of(recording, id).at.empty()) continue;
    ContextUse use = use_of(recording, id, by_pid, looks[source_of(recording, id).parent], view.listing_interval);
    if (!view.has_job || (use.process && view.in_job[static_cast<std::size_t>(*use.process)])) use.ours = true;
    if (view.batch.present) place_in_batch(recording, view.batch, view.listing_interval, use);
    const bool graphics = use.kind == ContextKind::kGraphics;
    if (use.process) {
      const auto process = static_cast<std::size_t>(*use.process);
      use.held_from = std::max(use.held_from, std::min(use.first_seen, view.no_gpu_until[process]));
      if (!graphics) view.holds[process] = true;
    }
    (graphics ? view.graphics : view.uses).push_back(use);
  }
}

}  // namespace

JobView job_view(const Recording& recording, const Thresholds& limits) {
  JobView view;
  view.batch = batch_view(recording);
  view.children = children_of(recording);
  view.trackers = trackers_of(recording);
  view.holds.assign(recording.sources.size(), false);
  std::vector<std::optional<Nanos>> ends;
  std::multimap<std::int64_t, SourceId> by_pid;
  add_processes(recording, view, by_pid, ends);
  add_waits(recording, view);
  leave_out_the_seen(recording, ends, view);
  add_machine(recording, view);
  const auto contexts = recording.all(SourceKind::kGpuProcess);
  view.has_contexts = knows_contexts(recording, view.has_job);
  view.listing_interval = median_spacing(recording, contexts, kSecond);
  std::map<SourceId, std::vector<Nanos>> looks;  // by device
  for (const SourceId gpu : recording.all(SourceKind::kGpu)) looks[gpu] = list_readings(recording, gpu);
  add_uses(recording, by_pid, looks, view);
  narrow_cores(recording, view);
  view.owners_unknown = owners_unknown(recording, view, limits);
  if (view.owners_unknown) {
    view.uses.clear();
    view.has_contexts = false;
  }
  std::stable_sort(view.uses.begin(), view.uses.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  tell_ends(recording, looks, view);
  std::set<SourceId> holders;
  for (const ContextUse& use : view.uses)
    if (use.process) holders.insert(*use.process);
  view.ranks = ranks_of(recording, holders);
  // A job that ended before anybody looked at its processes is one all the same; the driver listed none.
  view.has_job |= recording.meta.origin == "run" && view.has_contexts && contexts.empty();
  view.no_kernel_yet = no_kernel_yet(recording, view, limits);
  return view;
}

std::vector<Nanos> list_readings(const Recording& recording, SourceId gpu) {
  const Track& track = track_of(recording, gpu);
  const Column* listed = track.find(Metric::kComputeProcesses);
  std::vector<Nanos> readings;
  for (std::size_t row = 0; listed && row < track.at.size(); ++row)
    if (listed->has(row)) readings.push_back(track.at[row]);
  return readings;
}

std::vector<SourceId> descendants(const JobView& job, SourceId process) {
  std::vector<SourceId> found, open{process};
  while (!open.empty()) {
    const SourceId parent = open.back();
    open.pop_back();
    for (const SourceId id : job.children[static_cast<std::size_t>(parent)]) {
      if (id == process) continue;  // a damaged file may hold a circle
      if (!job.trackers.contains(id)) found.push_back(id);
      open.push_back(id);
    }
  }
  return found;
}

}  // namespace headroom
