// SPDX-License-Identifier: Apache-2.0
#include "analyze/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "analyze/doubt.h"
#include "analyze/evidence.h"
#include "analyze/phases.h"
#include "base/human.h"
#include "model/events.h"
#include "model/losses.h"

namespace headroom {

namespace {

const Track& track_of(const Recording& recording, SourceId source) {
  return recording.tracks[static_cast<std::size_t>(source)];
}

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

// Reasons are read more seldom than utilisation: a reading of them speaks for the time since the one before.
ClockLimits clocks_of(const Track& track, const Window& window, const Thresholds& limits) {
  constexpr std::int64_t kLimits =
      kReasonSwPowerCap | kReasonHwSlowdown | kReasonSwThermal | kReasonHwThermal | kReasonHwPowerBrake;
  const Column *util = track.find(Metric::kGpuUtil), *reasons = track.find(Metric::kEventReasons),
               *clock = track.find(Metric::kSmClock);
  ClockLimits sum;
  sum.recorded = reasons != nullptr;
  if (!util || !reasons) return sum;
  const std::int64_t running = from_unit(Metric::kGpuUtil, limits[Threshold::kThrottleUtil]);
  double clock_sum = 0, clock_rows = 0;
  std::optional<Nanos> before;  // the reading of reasons before this one
  for (std::size_t row = 0; row < track.at.size(); ++row) {
    if (!reasons->has(row)) continue;
    const Nanos since = std::exchange(before, track.at[row]).value_or(row > 0 ? track.at[row - 1] : track.at[row]);
    if (!window.holds(track.at[row]) || !util->has(row) || util->values[row] < running) continue;
    ++sum.readings;
    if ((reasons->values[row] & kLimits) == 0) continue;
    ++sum.limited;
    sum.reasons |= reasons->values[row] & kLimits;
    sum.limited_times.push_back({since, track.at[row]});
    if (clock && clock->has(row)) clock_sum += static_cast<double>(clock->values[row]), clock_rows += 1;
  }
  if (clock_rows > 0) sum.limited_clock_mhz = clock_sum / clock_rows;
  return sum;
}

// Without any activity while another device works: no context where contexts are known, else no utilisation.
std::vector<bool> idle_peers(const Analysis& a) {
  std::vector<bool> idle(a.devices.size(), false);
  bool any_works = false;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const auto busy =
        static_cast<double>(a.ledger.total(Account::kUseful, device) + a.ledger.total(Account::kDiscarded, device));
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

// Leaves the attempts that had a device, or could have had one, in the window.
void keep_window(BatchView& batch, const Window& window) {
  std::erase_if(batch.attempts,
                [&](const TaskAttempt& attempt) { return attempt.end <= window.begin || attempt.begin >= window.end; });
  batch.attempt_of_process.clear();  // positions in the list that was
}

// Leaves the uses of the window, as far as they lie in it.
void keep_window(std::vector<ContextUse>& uses, const Window& window) {
  std::erase_if(uses, [&](const ContextUse& use) { return use.end <= window.begin || use.begin >= window.end; });
  for (ContextUse& use : uses)
    for (Nanos* at : {&use.begin, &use.held_from, &use.end, &use.first_seen, &use.last_seen})
      *at = std::clamp(*at, window.begin, window.end);
}

}  // namespace

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
  return clock_time(meta.start_realtime + (at - meta.start));
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
  const TaskAttempt* attempt = attempt_at(slice.task, slice.begin + (slice.end - slice.begin) / 2);
  return attempt && !attempt->counted();
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

}  // namespace

Analysis analyze(const Recording& recording, Window window, const Thresholds& limits, const Told& told) {
  Analysis a;
  a.told = told;
  a.meta = recording.meta;
  a.limits = limits;
  a.window.end = std::clamp(window.end, recording.meta.start, std::max(recording.meta.start, recording.meta.end));
  a.window.begin = std::clamp(window.begin, recording.meta.start, a.window.end);
  a.losses = losses_of(recording, a.window);
  a.job = job_view(recording, limits);
  const auto evidence = evidence_of(recording, a.job, limits);
  DeviceTimes times = device_times(recording, a.job, limits, evidence);
  a.devices = std::move(times.devices);
  keep_window(a.job.batch, a.window);
  a.attempts_of_task.resize(a.job.batch.tasks.size());
  for (std::size_t i = 0; i < a.job.batch.attempts.size(); ++i)
    a.attempts_of_task[static_cast<std::size_t>(a.job.batch.attempts[i].task)].push_back(i);
  a.doubtful = doubtful_time(recording, a.devices);
  lower_confidence(a.devices, a.doubtful);
  for (DeviceTime& time : a.devices) clip(time.slices, a.window.begin, a.window.end);
  a.phases = find_phases(recording, a.devices, limits);
  a.pauses = pauses_of(a.phases);
  a.ledger = ledger(a.devices, a.window.begin, a.window.end);
  a.ledger.tasks = a.job.batch.tasks;
  a.ledger.places = std::move(times.places);
  const Window readings = readings_of(recording, a.window);
  for (std::size_t i = 0; i < a.devices.size(); ++i) {
    a.stats.push_back({i, device_stats(recording, a.devices[i].source, readings, limits)});
    a.clocks.push_back(clocks_of(track_of(recording, a.devices[i].source), readings, limits));
  }
  const double tail = limits[Threshold::kProgressTail] * static_cast<double>(a.window.length());
  a.late_from = a.window.end - static_cast<Nanos>(tail);
  a.host = host_summary(recording, a.job, a.window, a.late_from);
  keep_window(a.job.uses, a.window);
  keep_window(a.job.graphics, a.window);
  a.machine = gpus_of(recording);
  a.processes = processes_of(recording, a.window);
  a.tenants = tenants_of(recording, a);
  a.idle_peer = idle_peers(a);
  for (const Event& event : recording.events)
    if (is<events::DeviceLost>(event) && a.window.holds(event.at)) a.lost.push_back({event.at, event.source});
  return a;
}

Analysis analyze(const Recording& recording) { return analyze(recording, {recording.meta.start, recording.meta.end}); }

}  // namespace headroom
