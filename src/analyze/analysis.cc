// SPDX-License-Identifier: Apache-2.0
#include "analyze/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

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

// At the ends of the recording, whatever was read there belongs to it.
Window readings_of(const Recording& recording, Window window) {
  if (window.begin <= recording.meta.start) window.begin = std::numeric_limits<Nanos>::min();
  if (window.end >= recording.meta.end) window.end = std::numeric_limits<Nanos>::max();
  return window;
}

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

// CPython tells from 3.11 on which part of a line runs.
bool calls_are_named(const Recording& recording) {
  const auto threads = recording.all(SourceKind::kPythonThread);
  return !threads.empty() && std::all_of(threads.begin(), threads.end(), [&](SourceId id) {
    const auto& attrs = recording.sources[static_cast<std::size_t>(id)].attrs;
    const auto python = attrs.find("python");
    const auto parts = python == attrs.end() ? std::vector<std::string_view>{} : split(python->second, '.');
    return parts.size() > 1 && parts[0] == "3" && parse_number<int>(parts[1]).value_or(0) >= 11;
  });
}

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

// It has readings in the window and none of its utilisation; a GPU that was lost is something else.
bool utilisation_unreported(const Recording& recording, const Analysis& a, std::size_t device) {
  if (a.ledger.span() == 0 || a.ledger.total(Account::kUnobserved, device) < a.ledger.span()) return false;
  const MetricStats* util = a.stats_of(device, Metric::kGpuUtil);
  const auto& at = track_of(recording, a.devices[device].source).at;
  const bool any = std::any_of(at.begin(), at.end(), [&](Nanos reading) { return a.window.holds(reading); });
  return any && (!util || (util->samples == 0 && util->absent != Absent::kDeviceLost));
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

// The share of kernels and the mean utilisation are of the same readings: a report says one number for both.
void say_as_the_ledger(Analysis& a) {
  for (DeviceStats& stats : a.stats) {
    const Nanos observed = a.ledger.span() - a.ledger.total(Account::kUnobserved, stats.device);
    for (MetricStats& metric : stats.metrics)
      if (metric.metric == Metric::kGpuUtil && metric.samples > 0 && observed > 0)
        metric.mean = static_cast<double>(a.ledger.busy(stats.device)) / static_cast<double>(observed);
  }
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
  const auto& all = stats[device].metrics;
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& s) { return s.metric == metric; });
  return found == all.end() ? nullptr : &*found;
}

std::string Analysis::device_name(std::size_t device) const {
  return fmt::format("GPU {}", devices[device].device.index);
}

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

// The readings of the second half in four parts, each of which grows by a quarter of their mean growth at least, and
// the last by half of it: else it has just begun, or come to its end.
double pace_of(const std::vector<MemoryEnd>& readings, const Window& window) {
  constexpr Nanos kParts = 4;
  const Nanos half = window.begin + window.length() / 2, part = window.length() / 2 / kParts;
  if (part <= 0) return 0;
  std::vector<MemoryEnd> ends;  // of the first half, and of each part
  for (const MemoryEnd& one : readings) {
    const auto number = static_cast<std::size_t>(one.at <= half ? 0 : 1 + std::min(kParts - 1, (one.at - half) / part));
    if (number > ends.size()) return 0;  // a part without a reading
    if (number == ends.size())
      ends.push_back(one);
    else
      ends[number] = one;
  }
  if (ends.size() <= kParts) return 0;
  const double grown = ends.back().used - ends.front().used;
  for (std::size_t i = 1; i < ends.size(); ++i) {
    const double more = ends[i].used - ends[i - 1].used,
                 least = grown / (i + 1 < ends.size() ? 4 * kParts : 2 * kParts);
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
  if (last) last->pace = pace_of(readings, window);
  return last;
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

// Of the places that stacks name those at which code of a family ran, by most of their looks.
std::map<std::string, stacks::Family> families_of(const StackView& stacks) {
  std::map<std::string, std::map<stacks::Family, double>> looks_at;
  for (std::size_t kind = 0; kind < stacks.kinds.size(); ++kind)
    if (stacks.count[kind] > 0) looks_at[stacks.kinds[kind].where][stacks.kinds[kind].family] += stacks.count[kind];
  std::map<std::string, stacks::Family> families;
  for (const auto& [place, counts] : looks_at) {
    const auto most = std::max_element(counts.begin(), counts.end(),
                                       [](const auto& x, const auto& y) { return x.second < y.second; });
    if (most->first != stacks::Family::kNone) families[place] = most->first;
  }
  return families;
}

// Looks at waits for kernels do not count: the device works then.
std::map<std::string, double> plain_shares(const StackView& stacks) {
  std::map<std::string, std::pair<double, double>> looks_at;  // that are plain; all
  for (std::size_t kind = 0; kind < stacks.kinds.size(); ++kind) {
    const stacks::StackKind& one = stacks.kinds[kind];
    if (one.busy == stacks::Busy::kWaitsForKernels) continue;
    auto& [plain, all] = looks_at[one.where];
    all += stacks.count[kind];
    if (one.plain) plain += stacks.count[kind];
  }
  std::map<std::string, double> shares;
  for (const auto& [place, looks] : looks_at)
    if (looks.first > 0) shares[place] = looks.first / looks.second;
  return shares;
}

// The places at which stacks are so, and hardly ever otherwise. A function that launches kernels, too, is seen at these
// as well: looks at those do not count.
std::set<std::string> places_of(const StackView& stacks, bool (*is_so)(const stacks::StackKind&)) {
  constexpr double kHardlyElse = 0.9;
  std::map<std::string, std::pair<double, double>> looks_at;  // that are so; all
  for (std::size_t kind = 0; kind < stacks.kinds.size(); ++kind) {
    const stacks::StackKind& one = stacks.kinds[kind];
    if (one.busy == stacks::Busy::kWaitsForKernels || one.busy == stacks::Busy::kLaunches) continue;
    auto& [so, all] = looks_at[one.where];
    all += stacks.count[kind];
    if (is_so(one)) so += stacks.count[kind];
  }
  std::set<std::string> places;
  for (const auto& [place, looks] : looks_at)
    if (looks.first > 0 && looks.first >= kHardlyElse * looks.second) places.insert(place);
  return places;
}

}  // namespace

Analysis analyze(const Recording& recording, Window window, const Thresholds& limits, const Told& told) {
  Analysis a;
  a.told = told;
  a.meta = recording.meta;
  leave_out_unsaid(recording, a.meta);
  leave_out_unused(recording, a.meta);
  a.limits = limits;
  a.window.end = std::clamp(window.end, recording.meta.start, std::max(recording.meta.start, recording.meta.end));
  a.goes_on = goes_on(recording.meta);
  if (a.goes_on) a.window.end = std::min(a.window.end, last_reading(recording));
  a.window.begin = std::clamp(window.begin, recording.meta.start, a.window.end);
  a.losses = losses_of(recording, a.window);
  a.job = job_view(recording, limits);
  const stacks::Families families(told.families);
  StackView stacks = stack_view(recording, families);
  a.peer_waits = peer_waits(stacks, a.job, limits);
  for_peers(a.peer_waits, stacks);
  a.families = families_of(stacks);
  a.plain_shares = plain_shares(stacks);
  a.precision = stacks::precision_seen(recording.texts);
  for (const stacks::StackKind& kind : stacks.kinds)
    if (kind.for_child) a.child_waits.insert(kind.where);
  a.process_waits = places_of(stacks, [](const stacks::StackKind& kind) { return kind.of_processes && kind.waits; });
  a.idle_loops = places_of(stacks, [](const stacks::StackKind& kind) { return kind.in_loop; });
  a.feeding = places_of(stacks, [](const stacks::StackKind& kind) { return kind.feeds_main; });
  DeviceTimes times = device_times(recording, a.job, limits, evidence_of(recording, a.job, stacks, families, limits));
  a.devices = std::move(times.devices);
  const NamedPhases named = named_phases(recording, a.job, stacks);
  place_at_edges(recording, named, limits, a.devices);
  mark_phases(named, a.devices);
  keep_window(a.job.batch, a.job.uses, a.window);
  a.attempts_of_task.resize(a.job.batch.tasks.size());
  for (std::size_t i = 0; i < a.job.batch.attempts.size(); ++i)
    a.attempts_of_task[static_cast<std::size_t>(a.job.batch.attempts[i].task)].push_back(i);
  a.wanted = wanted_times(a.job.batch);
  a.doubtful = doubtful_time(recording, a.devices);
  lower_confidence(a.devices, a.doubtful);
  for (DeviceTime& time : a.devices) clip(time.slices, a.window.begin, a.window.end);
  a.phases = find_phases(recording, a.devices, limits);
  a.worker_looks = worker_looks(stacks, a.job, a.devices);
  a.calls_named = calls_are_named(recording);
  a.kernel_waits = kernel_waits(stacks, a.job, a.devices);
  a.idle_shares = idle_shares(stacks, a.job, a.devices, times.places);
  a.thread_waits = thread_waits_at_end(stacks, a.job, a.devices);
  a.long_stays = long_stays(stacks, a.job, a.devices, limits.time(Threshold::kLongPause));
  a.other_threads = thread_code(stacks, a.job, a.devices);
  const auto left_out = [](const Loss& loss) { return loss.what == info(LossKind::kStackLeftOut).name; };
  a.one_python_thread_each =
      one_python_thread_each(stacks, a.job) && std::none_of(recording.losses.begin(), recording.losses.end(), left_out);
  a.pauses = pauses_of(a.phases);
  describe_phases(recording, named, a.devices, limits, a.phases);
  a.pauses.resize(a.phases.size(), false);
  // A log that names its phases tells more than the levels of their readings.
  if (std::any_of(named.tracks.begin(), named.tracks.end(), [](const auto& track) { return track.via == "table"; }))
    a.pauses.assign(a.phases.size(), false);
  if (!a.job.batch.present) a.work = step_counts(recording).work(a.window);  // its tasks count each for itself
  if (!a.job.batch.present) a.ranks = rank_paces(recording, a.window, limits);
  a.said = said_of(recording, a.window);
  a.ledger = ledger(a.devices, a.window.begin, a.window.end);
  a.ledger.tasks = a.job.batch.tasks;
  const auto lines_of = [&](LinesOf accounts) {
    return lines_of_places(stacks, a.job, a.devices, times.places, accounts);
  };
  a.ledger.lines = lines_of(LinesOf::kOthers);
  a.ledger.lines_of_startup = lines_of(LinesOf::kStartup);
  a.ledger.lines_of_sync = lines_of(LinesOf::kSync);
  a.ledger.places = std::move(times.places);
  const Window readings = readings_of(recording, a.window);
  std::vector<std::vector<Stall>> stalls;
  for (std::size_t i = 0; i < a.devices.size(); ++i) {
    const Track& track = track_of(recording, a.devices[i].source);
    a.stats.push_back({i, device_stats(recording, a.devices[i].source, readings, limits)});
    a.clocks.push_back(
        clock_limits(track, a.devices[i].slices, readings, limits, a.devices[i].device.sm_clock_max_mhz));
    a.held.push_back(held_memory(track, readings, recording.meta.interval));
    stalls.push_back(find_stalls(track, readings, limits));
    a.stalls.push_back(lasting_stall(stalls.back(), a.devices[i].slices, limits));
    a.quiet_ends.push_back(find_quiet_end(track, a.devices[i].slices, readings, limits));
    a.job_gaps.push_back(find_job_gaps(track, readings, limits));
    a.unreported.push_back(utilisation_unreported(recording, a, i));
    a.busy_error.push_back(busy_error(recording, a.devices[i].source, a.window.begin, a.window.end, limits));
    a.memory_ends.push_back(a.window.end >= recording.meta.end ? memory_end(recording, a.devices[i], a.window)
                                                               : std::nullopt);
    a.copied.push_back(copied_to(track, a.window));
    a.links.push_back(link_under_load(track, a.devices[i].device, readings, limits));
    a.profiles.push_back(device_profile(recording, a.devices[i].source, a.window.begin, a.window.end));
  }
  say_as_the_ledger(a);
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
  a.idle_peer = idle_peers(a);
  std::vector<const Track*> at_work;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    if (!a.idle_peer[device]) at_work.push_back(&track_of(recording, a.devices[device].source));
  a.common_lows = common_lows(at_work, readings, recording.meta.interval);
  if (!a.job.batch.present) a.waits_in_kernels = waits_in_kernels(stalls, a.devices, a.idle_peer, limits);
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    a.of_others.push_back(a.idle_peer[device] && a.job.has_contexts &&
                          static_cast<double>(a.ledger.total(Account::kForeign, device)) >
                              a.limits[Threshold::kPeerWorks] * static_cast<double>(a.ledger.span()));
  a.lost = lost_devices(recording, a);
  return a;
}

Analysis analyze(const Recording& recording) { return analyze(recording, {recording.meta.start, recording.meta.end}); }

}  // namespace headroom
