// SPDX-License-Identifier: Apache-2.0
#include "analyze/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analyze/call_evidence.h"
#include "analyze/doubt.h"
#include "analyze/evidence.h"
#include "analyze/named_phases.h"
#include "analyze/phase_edges.h"
#include "analyze/phases.h"
#include "analyze/stack_evidence.h"
#include "analyze/work.h"
#include "base/human.h"
#include "base/strings.h"
#include "model/events.h"
#include "model/losses.h"
#include "model/notes.h"

namespace headroom {

namespace {

std::vector<MachineGpu> gpus_of(const Recording& recording) {
  std::vector<MachineGpu> gpus;
  for (const SourceId id : recording.all(SourceKind::kGpu))
    gpus.push_back({id, device_of(recording.sources[static_cast<std::size_t>(id)])});
  std::stable_sort(gpus.begin(), gpus.end(),
                   [](const auto& a, const auto& b) { return a.device.index < b.device.index; });
  return gpus;
}

std::optional<Nanos> last_seen(const JobView& job, const StackView& stacks, SourceId process) {
  std::optional<Nanos> at;
  if (const auto& did = job.did[static_cast<std::size_t>(process)]; !did.empty()) at = did.back().end;
  const auto looks = stacks.looks.find(process);
  if (looks != stacks.looks.end() && !looks->second.all().empty())
    at = std::max(at.value_or(0), looks->second.all().back().at);
  return at;
}

std::vector<RecordedProcess> processes_of(const Recording& recording, const Window& window) {
  std::vector<RecordedProcess> processes;
  for (const SourceId id : recording.all(SourceKind::kProcess)) {
    Process facts = process_of(recording.sources[static_cast<std::size_t>(id)]);
    if (facts.start < window.end && facts.end.value_or(window.end) > window.begin)
      processes.push_back({id, std::move(facts)});
  }
  return processes;
}

std::vector<Tenant> tenants_of(const Recording& recording, const Analysis& analysis) {
  std::vector<Tenant> tenants;
  if (!analysis.job.has_job) return tenants;
  for (const ContextUse& use : analysis.job.uses) {
    const auto device = std::find_if(analysis.devices.begin(), analysis.devices.end(),
                                     [&](const auto& d) { return d.source == use.device; });
    if (use.ours || device == analysis.devices.end()) continue;
    Tenant tenant{use, {}, static_cast<std::size_t>(device - analysis.devices.begin()), 0};
    tenant.process.pid = use.pid;
    if (use.process) tenant.process = process_of(recording.sources[static_cast<std::size_t>(*use.process)]);
    const Track& track = track_of(recording, use.source);
    if (const Column* memory = track.find(Metric::kProcessGpuMemory))
      for (std::size_t row = 0; row < track.at.size(); ++row)
        if (memory->has(row) && analysis.window.holds(track.at[row]))
          tenant.peak_bytes = std::max(tenant.peak_bytes, memory->values[row]);
    tenants.push_back(std::move(tenant));
  }
  return tenants;
}

// Without any activity while another device works: no context where contexts are known, else no utilisation.
std::vector<bool> idle_peers(const Analysis& a) {
  std::vector<bool> idle(a.devices.size(), false);
  bool any_works = false;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const auto busy = static_cast<double>(a.ledger.busy(device) - a.ledger.total(Account::kForeign, device));
    const bool works = busy > a.limits[Threshold::kPeerWorks] * static_cast<double>(a.ledger.span());
    const MetricStats* util = a.stats_of(device, Metric::kGpuUtil);
    const bool quiet = util && util->samples > 0 && util->max <= a.limits[Threshold::kQuietUtil];
    idle[device] = !works && (a.job.has_contexts ? !a.devices[device].used : quiet);
    any_works |= works;
  }
  // Which GPU of a batch stood free while tasks waited, and which had no task, is known better.
  if (!any_works || a.job.batch.present) idle.assign(idle.size(), false);
  return idle;
}

// Those that touched the window, as far as it is known when they were; of the rest that they were somewhere.
std::vector<Loss> losses_of(const Recording& recording, const Window& window) {
  std::vector<Loss> losses = recording.losses;
  if (window.begin <= recording.meta.start && window.end >= recording.meta.end) return losses;
  std::erase_if(losses, [&](const Loss& loss) { return !reaches(loss, kNoSource, window.begin, window.end); });
  for (Loss& loss : losses)
    if (loss.places.empty())
      loss.detail = loss.detail.empty() ? "somewhere in the recording" : "somewhere in the recording; " + loss.detail;
  return losses;
}

// The last time of which a GPU of the recording was read; without GPUs, a process. What is still being written lacks
// the last seconds.
Nanos last_reading(const Recording& recording) {
  Nanos last = recording.meta.start;
  const bool gpus = !recording.all(SourceKind::kGpu).empty();
  for (const SourceKind kind : {gpus ? SourceKind::kGpu : SourceKind::kProcess, SourceKind::kGpuUtilRing})
    for (const SourceId id : recording.all(kind))
      if (const auto& at = track_of(recording, id).at; !at.empty()) last = std::max(last, at.back());
  return std::min(last, recording.meta.end);
}

// From the driver's events, and of a log from the cells that say it.
std::vector<LostDevice> lost_devices(const Recording& recording, const Analysis& a) {
  std::vector<LostDevice> lost;
  // A job that ends because of it ends before the next look at the device.
  const bool to_the_end = a.window.end >= recording.meta.end;
  for (const Event& event : recording.events)
    if (const auto told = of_event<events::DeviceLost>(event);
        told && (a.window.holds(event.at) || (to_the_end && event.at >= a.window.end)))
      lost.push_back({event.at, event.source, told->text.value_or("GPU is lost")});
  if (!lost.empty()) return lost;
  for (const DeviceTime& time : a.devices) {
    const Track& track = track_of(recording, time.source);
    const Column* util = track.find(Metric::kGpuUtil);
    // From its last reading on.
    const std::size_t rows = util ? track.at.size() : 0;
    std::size_t since = rows;
    while (since > 0 && !util->has(since - 1)) --since;
    while (since < rows && util->at(since) != tl::unexpected(Absent::kDeviceLost)) ++since;
    if (since < rows && a.window.holds(track.at[since])) lost.push_back({track.at[since], time.source, "GPU is lost"});
  }
  return lost;
}

// Leaves the attempts that had a device, or could have had one, in the window.
void keep_window(BatchView& batch, std::vector<ContextUse>& uses, const Window& window) {
  const auto gone = [&](const TaskAttempt& attempt) {
    return attempt.end <= window.begin || attempt.begin >= window.end;
  };
  std::vector<std::int32_t> now;  // by the position that was
  std::int32_t left = 0;
  for (const TaskAttempt& attempt : batch.attempts) now.push_back(gone(attempt) ? -1 : left++);
  for (ContextUse& use : uses)
    if (use.attempt >= 0) use.attempt = now[static_cast<std::size_t>(use.attempt)];
  std::erase_if(batch.attempts, gone);
  batch.attempt_of_process.clear();  // positions in the list that was
}

// By GPU, when it had attempts whose work was not thrown away.
std::map<SourceId, std::vector<Window>> wanted_times(const BatchView& batch) {
  std::map<SourceId, std::vector<Window>> times;
  for (const TaskAttempt& attempt : batch.attempts) {  // in order of begin
    if (attempt.in_vain()) continue;
    for (const SourceId device : attempt.devices) {
      auto& all = times[device];
      if (!all.empty() && attempt.begin <= all.back().end)
        all.back().end = std::max(all.back().end, attempt.end);
      else
        all.push_back({attempt.begin, attempt.end});
    }
  }
  return times;
}

// Leaves the uses of the window, as far as they lie in it.
void keep_window(std::vector<ContextUse>& uses, const Window& window) {
  std::erase_if(uses, [&](const ContextUse& use) { return use.end <= window.begin || use.begin >= window.end; });
  for (ContextUse& use : uses)
    for (Nanos* at : {&use.begin, &use.held_from, &use.end, &use.first_seen, &use.last_seen})
      *at = std::clamp(*at, window.begin, window.end);
}

}  // namespace

std::optional<int> Analysis::signal() const {
  constexpr int kSignals = 128, kLast = 64;
  const int number = meta.exit_code.value_or(0) - kSignals;
  return number > 0 && number <= kLast ? std::optional(number) : std::nullopt;
}

double Analysis::share(Nanos ns) const {
  return ledger.budget() > 0 ? static_cast<double>(ns) / static_cast<double>(ledger.budget()) : 0;
}

const MetricStats* Analysis::stats_of(std::size_t device, Metric metric) const {
  return gpus[device].stats.find(metric);
}

std::string Analysis::device_name(std::size_t device) const { return gpu_name(devices[device].device); }

std::string Analysis::when(Nanos at) const {
  if (meta.start_realtime == 0) return human_duration(at - meta.start) + " after the start";
  constexpr std::int64_t kOneDay = 86'400;                    // a file may say anything
  const auto offset = meta.extra.find("utc_offset_seconds");  // of a log, whose own time is told
  const auto stored = offset == meta.extra.end() ? std::nullopt : parse_number<std::int64_t>(offset->second);
  const std::int64_t seconds = stored && *stored > -kOneDay && *stored < kOneDay ? *stored : 0;
  return clock_time(meta.start_realtime + (at - meta.start), seconds * kSecond);
}

const TaskAttempt* Analysis::attempt_at(std::int32_t task, Nanos at) const {
  if (task < 0) return nullptr;
  for (const std::size_t i : attempts_of_task[static_cast<std::size_t>(task)]) {
    const TaskAttempt& attempt = job.batch.attempts[i];
    if (attempt.begin <= at && at < attempt.end) return &attempt;
  }
  return nullptr;
}

bool Analysis::held_for_nothing(const Slice& slice) const {
  const Nanos middle = slice.begin + (slice.end - slice.begin) / 2;
  const TaskAttempt* attempt = attempt_at(slice.task, middle);
  if (!attempt || !attempt->in_vain()) return false;
  return std::none_of(attempt->devices.begin(), attempt->devices.end(), [&](SourceId device) {
    const auto found = wanted.find(device);
    if (found == wanted.end()) return false;
    const auto after = std::upper_bound(found->second.begin(), found->second.end(), middle,
                                        [](Nanos at, const Window& time) { return at < time.begin; });
    return after != found->second.begin() && middle < std::prev(after)->end;
  });
}

namespace {

// A phase in which its device's work pauses is any but the busiest of that device.
std::vector<bool> pauses_of(const std::vector<Phase>& phases) {
  std::vector<bool> pauses;
  for (const Phase& phase : phases)
    pauses.push_back(std::any_of(phases.begin(), phases.end(), [&](const Phase& other) {
      return other.device == phase.device && other.gpu_util_ratio > phase.gpu_util_ratio;
    }));
  return pauses;
}

// A job may have set no marks, and what was read of its output may have said nothing.
void leave_out_unsaid(const Recording& recording, RecordingMeta& meta) {
  std::string said;
  for (const SourceId id : recording.all(SourceKind::kMarks)) {
    const Attrs& attrs = recording.sources[static_cast<std::size_t>(id)].attrs;
    const auto via = attrs.find("via");
    if (via != attrs.end()) said += via->second == "output" ? 'L' : 'X';
  }
  for (const auto& [tier, why] :
       {std::pair('X', std::string_view("the job set none")), std::pair('L', kOutputToldNothing)}) {
    if (meta.tiers.find(tier) == std::string::npos || said.find(tier) != std::string::npos) continue;
    std::erase(meta.tiers, tier);
    meta.missing_tiers.push_back({.tier = tier, .why = std::string(why)});
  }
}

// Stacks could be read, but there may have been no Python to read them of, or none that lets itself be read.
void leave_out_unused(const Recording& recording, RecordingMeta& meta) {
  const auto threads = recording.all(SourceKind::kPythonThread);
  if (std::any_of(threads.begin(), threads.end(),
                  [&](SourceId id) { return !recording.tracks[static_cast<std::size_t>(id)].lists.empty(); }))
    return;
  std::erase(meta.tiers, 'Y');
  for (const SourceId id : recording.all(SourceKind::kProcess)) {
    const Attrs& attrs = recording.sources[static_cast<std::size_t>(id)].attrs;
    const auto declined = attrs.find("python_declined");
    if (declined == attrs.end() || declined->second.empty()) continue;
    meta.missing_tiers.push_back({.tier = 'Y', .why = declined->second});
    return;
  }
}

void add_line(std::optional<SaidOutOfMemory>& said, Nanos at, std::string_view words) {
  if (!said) said = SaidOutOfMemory{.first = at};
  said->last = at;
  ++said->lines;
  said->words = words;
}

void take_notes(const Recording& recording, Analysis& a) {
  for (const Event& event : recording.events) {
    if (const auto end = of_event<events::JobEnd>(event); end && end->exit_code)
      a.returned = static_cast<int>(*end->exit_code);
    const auto note = of_event<events::Note>(event);
    if (!note) continue;
    const std::string_view text = note->text;
    // The last words of a job are read when it has ended.
    const bool in_time = a.window.holds(event.at) || (a.window.end >= a.meta.end && event.at >= a.window.end);
    if (text.starts_with(kNoteOutOfMemory) && in_time)
      add_line(a.out_of_memory, event.at, text.substr(kNoteOutOfMemory.size()));
    if (text.starts_with(kNoteException)) a.exception = text.substr(kNoteException.size());
    if (text.starts_with(kNoteNvtx) && !text.substr(kNoteNvtx.size()).starts_with(kNoteNvtxNotWanted)) a.no_nvtx = text;
  }
}

// What is in the recording; of one that goes on, up to its last reading.
Window clipped(Window window, const Recording& recording) {
  window.end = std::clamp(window.end, recording.meta.start, std::max(recording.meta.start, recording.meta.end));
  if (goes_on(recording.meta)) window.end = std::min(window.end, last_reading(recording));
  window.begin = std::clamp(window.begin, recording.meta.start, window.end);
  return window;
}

// Where the time of the devices went in the window, with its phases; the places of its slices.
std::vector<std::string> account_for_devices(const Recording& recording, const StackView& stacks, Analysis& a) {
  const stacks::Families families(a.told.families);
  DeviceTimes times =
      device_times(recording, a.job, a.limits, evidence_of(recording, a.job, stacks, families, a.limits));
  a.devices = std::move(times.devices);
  const NamedPhases named = named_phases(recording, a.job, stacks);
  place_at_edges(recording, named, a.limits, a.devices);
  mark_phases(named, a.devices);
  keep_window(a.job.batch, a.job.uses, a.window);
  a.attempts_of_task.resize(a.job.batch.tasks.size());
  for (std::size_t i = 0; i < a.job.batch.attempts.size(); ++i)
    a.attempts_of_task[static_cast<std::size_t>(a.job.batch.attempts[i].task)].push_back(i);
  a.wanted = wanted_times(a.job.batch);
  a.doubtful = doubtful_time(recording, a.devices);
  lower_confidence(a.devices, a.doubtful);
  for (DeviceTime& time : a.devices) clip(time.slices, a.window.begin, a.window.end);
  a.phases = find_phases(recording, a.devices, a.limits);
  a.pauses = pauses_of(a.phases);
  describe_phases(recording, named, a.devices, a.limits, a.phases);
  a.pauses.resize(a.phases.size(), false);
  // A log that names its phases tells more than the levels of their readings.
  if (std::any_of(named.tracks.begin(), named.tracks.end(), [](const auto& track) { return track.via == "table"; }))
    a.pauses.assign(a.phases.size(), false);
  return std::move(times.places);
}

Ledger ledger_of(const StackView& stacks, const Analysis& a, std::vector<std::string> places) {
  Ledger made = ledger(a.devices, a.window.begin, a.window.end);
  made.tasks = a.job.batch.tasks;
  const WatchedJob watched{stacks, a.job, a.devices};
  const auto lines_of = [&](LinesOf accounts) { return lines_of_places(watched, places, accounts); };
  made.lines = lines_of(LinesOf::kOthers);
  made.lines_of_startup = lines_of(LinesOf::kStartup);
  made.lines_of_sync = lines_of(LinesOf::kSync);
  made.lines_of_input = lines_of(LinesOf::kInput);
  made.places = std::move(places);
  return made;
}

// What a GPU did, seen beside what the others did meanwhile.
void look_beside_each_other(const Recording& recording, Analysis& a) {
  const std::vector<bool> idle_peer = idle_peers(a);
  std::vector<const Track*> at_work;
  std::vector<std::vector<Stall>> stalls;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    GpuAnalysis& gpu = a.gpus[device];
    gpu.idle_peer = idle_peer[device];
    gpu.of_others = gpu.idle_peer && a.job.has_contexts &&
                    static_cast<double>(a.ledger.total(Account::kForeign, device)) >
                        a.limits[Threshold::kPeerWorks] * static_cast<double>(a.ledger.span());
    if (!gpu.idle_peer) at_work.push_back(&track_of(recording, a.devices[device].source));
    stalls.push_back(gpu.stalls);
  }
  a.common_lows = common_lows(at_work, readings_of(recording, a.window), recording.meta.interval);
  if (!a.job.batch.present) a.waits_in_kernels = waits_in_kernels(stalls, a.devices, idle_peer, a.limits);
  if (a.waits_in_kernels.everywhere && a.job.has_host) a.waits_in_kernels = {};  // its processes tell what they do
}

}  // namespace

Analysis analyze(const Recording& recording, Window window, const Thresholds& limits, const Told& told) {
  Analysis a;
  a.told = told;
  a.limits = limits;
  a.meta = recording.meta;
  leave_out_unsaid(recording, a.meta);
  leave_out_unused(recording, a.meta);
  a.goes_on = goes_on(recording.meta);
  a.window = clipped(window, recording);
  a.losses = losses_of(recording, a.window);
  a.job = job_view(recording, limits);
  const stacks::Families families(told.families);
  StackView stacks = stack_view(recording, families);
  a.peer_waits = peer_waits(stacks, a.job, limits);
  for_peers(a.peer_waits, stacks);
  std::vector<std::string> places = account_for_devices(recording, stacks, a);
  a.code = code_seen(recording, {stacks, a.job, a.devices}, places, limits);
  TracedCode traced = traced_code(recording, families);
  a.code.families.merge(traced.families);
  a.code.loader_traced = traced.loader;
  if (!a.job.batch.present) {  // its tasks count each for itself
    a.work = step_counts(recording).work(a.window);
    a.ranks = rank_paces(recording, a.window, limits);
  }
  a.said = said_of(recording, a.window);
  if (a.job.batch.present) a.said.metrics.clear();  // each task says its own
  a.ledger = ledger_of(stacks, a, std::move(places));
  for (std::size_t i = 0; i < a.devices.size(); ++i)
    a.gpus.push_back(gpu_analysis(recording, i, a.devices[i], a.ledger, limits));
  look_beside_each_other(recording, a);
  take_notes(recording, a);
  const double tail = limits[Threshold::kProgressTail] * static_cast<double>(a.window.length());
  a.late_from = a.window.end - static_cast<Nanos>(tail);
  a.host = host_summary(recording, a.job, a.window, a.late_from);
  keep_window(a.job.uses, a.window);
  keep_window(a.job.graphics, a.window);
  a.machine = gpus_of(recording);
  a.processes = processes_of(recording, a.window);
  for (const RecordedProcess& process : a.processes)
    if (const auto at = last_seen(a.job, stacks, process.source)) a.last_seen[process.source] = *at;
  a.tenants = tenants_of(recording, a);
  a.lost = lost_devices(recording, a);
  return a;
}

Analysis analyze(const Recording& recording) { return analyze(recording, {recording.meta.start, recording.meta.end}); }

}  // namespace headroom
