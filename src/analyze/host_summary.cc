// SPDX-License-Identifier: Apache-2.0
#include "analyze/host_summary.h"

#include <algorithm>
#include <map>
#include <set>

#include "analyze/ledger.h"
#include "model/entities.h"

namespace headroom {

namespace {

// A mean over the time for which there is something to average.
struct Mean {
  double sum = 0, length = 0;
  void add(double value, double dt) { sum += value * dt, length += dt; }
  [[nodiscard]] double value() const { return length > 0 ? sum / length : 0; }
  [[nodiscard]] std::optional<double> known() const { return length > 0 ? std::optional(value()) : std::nullopt; }
};

struct Means {
  Mean cpu, main_cpu, delay, io, read, passed, passes, write, unseen, faults;
  double inside = 0, readings = 0;  // seconds of the readings that are summed up, and of these readings
};

using Windows = std::vector<Window>;  // in order of time, none overlaps another

// Calls use(entry, seconds of it that lie in the windows) for each that touches them.
template <class Entry, class Use>
void within(const std::vector<Entry>& list, const Windows& windows, const Use& use) {
  auto window = windows.begin();
  for (const Entry& entry : list) {
    while (window != windows.end() && window->end <= entry.begin) ++window;
    Nanos ns = 0;
    for (auto at = window; at != windows.end() && at->begin < entry.end; ++at)
      ns += std::max<Nanos>(0, std::min(entry.end, at->end) - std::max(entry.begin, at->begin));
    if (ns > 0) use(entry, seconds(ns));
  }
}

constexpr double kPasses = 1e6;  // bytes per second through files: less are libraries and logs, by judgement

Means means_of(const std::vector<Activity>& list, const Windows& windows, Looks& looks) {
  Means mean;
  within(list, windows, [&](const Activity& a, double dt) {
    mean.inside += dt, mean.readings += seconds(a.end - a.begin);
    mean.cpu.add(a.cpu, dt);
    mean.main_cpu.add(a.main_cpu.value_or(std::min(1.0, a.cpu)), dt);
    mean.delay.add(a.run_delay, dt);
    mean.unseen.add(a.unseen_cpu, dt);
    if (a.io_delay) mean.io.add(*a.io_delay, dt);
    if (a.read_bytes_per_second) mean.read.add(*a.read_bytes_per_second, dt);
    if (const auto passed = a.passed_bytes_per_second)
      mean.passed.add(*passed, dt), mean.passes.add(*passed >= kPasses ? 1 : 0, dt);
    if (a.write_bytes_per_second) mean.write.add(*a.write_bytes_per_second, dt);
    if (a.major_faults_per_second) mean.faults.add(*a.major_faults_per_second, dt);
    const double weight = dt / seconds(a.end - a.begin);
    if (a.state != '?') looks.states += weight, looks.blocked += a.state == 'D' ? weight : 0;
    if (a.wait == WaitChannel::kUnknown) return;
    looks.count += weight, looks.in[static_cast<std::size_t>(a.wait)] += weight;
    if (a.waits_for == kNoList) return;
    Looks::Named& named = looks.waits[{a.wait, a.waits_for}];
    named.count += weight, named.seconds += seconds(a.end - a.begin);
    named.sent += static_cast<double>(a.sent), named.received += static_cast<double>(a.received);
  });
  return mean;
}

void sum_up(std::optional<double>& sum, const Mean& mean, double weight = 1) {
  if (mean.length > 0) sum = sum.value_or(0) + mean.value() * weight;
}

// The helpers of one owner. Each counts for as long as it lived: one that follows another does not double its work.
void add_helpers(const JobView& job, const std::set<SourceId>& helpers, const Windows& windows, double owner_length,
                 HostSummary& summary, Mean& delay) {
  // The most that lived at once: of those that stay, or of all where none does. A program that a worker runs, and that
  // is gone at the next look, is no further worker.
  constexpr Nanos kStays = kSecond;
  std::vector<std::pair<Nanos, int>> lives, stays;
  for (const SourceId helper : helpers) {
    const auto& list = job.did[static_cast<std::size_t>(helper)];
    const Means mean = means_of(list, windows, summary.helper_looks);
    if (mean.cpu.length <= 0) continue;
    // When it began is known; that it is gone is only noticed at a reading, and the next one may have begun by then.
    const Nanos begin = list.front().begin, last_seen = std::max(begin + 1, list.back().begin);
    for (auto* of : {&lives, list.back().end - begin >= kStays ? &stays : nullptr})
      if (of) of->insert(of->end(), {{begin, 1}, {last_seen, -1}});
    const double lived = owner_length > 0 ? std::min(1.0, mean.cpu.length / owner_length) : 1;
    summary.helper_cpu += mean.cpu.value() * lived;
    sum_up(summary.helper_read, mean.read, lived);
    sum_up(summary.major_faults, mean.faults, lived);
    delay.add(mean.delay.value(), mean.cpu.length);
  }
  if (!stays.empty()) lives = std::move(stays);
  std::sort(lives.begin(), lives.end());
  int now = 0, most = 0;
  for (const auto& [at, change] : lives) most = std::max(most, now += change);
  summary.helpers += static_cast<std::size_t>(most);
}

struct Owned {
  SourceId process;
  Windows windows;
};

HostSummary summarise(const JobView& job, const std::vector<Owned>& owners) {
  HostSummary summary;
  Mean cpu, delay, io, threads, helper_delay, busy, pressure, memory, group, swapped;
  double inside = 0, readings = 0;
  std::set<SourceId> seen;
  for (const Owned& owner : owners) seen.insert(owner.process);
  for (const Owned& owner : owners) {
    const Means mean = means_of(job.did[static_cast<std::size_t>(owner.process)], owner.windows, summary.owner_looks);
    inside += mean.inside, readings += mean.readings;
    if (mean.cpu.length > 0) {
      const double all = mean.cpu.value(), wanted = all + mean.delay.value();
      summary.least_owner_cpu = summary.owners == 0 ? wanted : std::min(summary.least_owner_cpu, wanted);
      summary.most_owner_cpu = std::max(summary.most_owner_cpu, wanted);
      ++summary.owners;
      // By how long each was there: one that was seen for a moment says little of this time.
      cpu.add(mean.main_cpu.value(), mean.cpu.length);
      delay.add(mean.delay.value(), mean.cpu.length);
      threads.add(std::max(0.0, all - mean.main_cpu.value()), mean.cpu.length);
      if (mean.io.length > 0) io.add(mean.io.value(), mean.io.length);
      sum_up(summary.owner_read, mean.read);
      sum_up(summary.owner_passed, mean.passed);
      summary.owner_passes = std::max(summary.owner_passes, mean.passes.value());
      sum_up(summary.owner_write, mean.write);
      sum_up(summary.major_faults, mean.faults);
      summary.unseen_cpu += mean.unseen.value();
    }
    std::set<SourceId> helpers;
    for (const SourceId below : descendants(job, owner.process))
      if (seen.insert(below).second) helpers.insert(below);
    add_helpers(job, helpers, owner.windows, mean.cpu.length, summary, helper_delay);
    within(job.machine, owner.windows, [&](const MachineActivity& machine, double dt) {
      if (machine.busy_cores) busy.add(*machine.busy_cores, dt);
      if (machine.io_pressure) pressure.add(*machine.io_pressure, dt);
      if (machine.memory_pressure) memory.add(*machine.memory_pressure, dt);
      if (machine.swapped_in_pages_per_second) swapped.add(*machine.swapped_in_pages_per_second, dt);
    });
    within(job.group, owner.windows, [&](const MachineActivity& of_group, double dt) {
      if (of_group.memory_pressure) group.add(*of_group.memory_pressure, dt);
    });
  }
  if (readings > 0) summary.of_readings = inside / readings;
  summary.owner_cpu = cpu.value();
  summary.owner_delay = delay.value();
  summary.owner_threads = threads.value();
  summary.owner_io = io.known();
  summary.helper_cpu += summary.unseen_cpu;
  summary.helper_delay = helper_delay.value();
  summary.usable_cores = job.usable_cores;
  summary.machine_cores = job.machine_cores;
  summary.busy_cores = busy.known();
  summary.io_pressure = pressure.known();
  summary.memory_pressure = memory.known();
  summary.group_pressure = group.known();
  summary.swapped_in = swapped.known();
  return summary;
}

}  // namespace

double Looks::share(std::initializer_list<WaitChannel> channels) const {
  double sum = 0;
  for (const WaitChannel channel : channels) sum += in[static_cast<std::size_t>(channel)];
  return count > 0 ? sum / count : 0;
}

HostSummary host_summary(const Recording& recording, const JobView& job, const Window& window, Nanos late_from) {
  std::map<SourceId, Windows> owned;
  for (const ContextUse& use : job.uses)
    if (use.ours && use.process && use.begin < window.end && use.end > window.begin) owned[*use.process] = {window};
  std::vector<Owned> owners;
  for (auto& [process, windows] : owned) owners.push_back({process, std::move(windows)});
  HostSummary summary = summarise(job, owners);
  if (owners.empty()) {
    Mean busy;
    within(job.machine, {window}, [&](const MachineActivity& machine, double dt) {
      if (machine.busy_cores) busy.add(*machine.busy_cores, dt);
    });
    summary.busy_cores = busy.known();
  }
  for (const SourceId id : recording.all(SourceKind::kProcess)) {
    if (job.has_job && !job.in_job[static_cast<std::size_t>(id)]) continue;
    double used = 0;  // seconds
    for (const Activity& a : job.did[static_cast<std::size_t>(id)])
      used += a.cpu * std::max(0.0, seconds(std::min(a.end, window.end) - std::max(a.begin, late_from)));
    summary.late_cpu = std::max(summary.late_cpu, used / std::max(1e-9, seconds(window.end - late_from)));
  }
  return summary;
}

HostSummary host_during(const JobView& job, const std::vector<DeviceTime>& devices, const Claims& claims) {
  std::map<SourceId, Windows> owned;
  for (const ContextUse& use : job.uses) {
    const auto device =
        std::find_if(devices.begin(), devices.end(), [&](const DeviceTime& time) { return time.source == use.device; });
    if (!use.ours || !use.process || device == devices.end()) continue;
    const auto place = static_cast<std::size_t>(device - devices.begin());
    Windows& windows = owned[*use.process];
    auto piece = std::partition_point(claims.begin(), claims.end(), [&](const ClaimedPiece& p) {
      return p.device < place || (p.device == place && p.end <= use.begin);
    });
    for (; piece != claims.end() && piece->device == place && piece->begin < use.end; ++piece)
      windows.push_back({std::max(piece->begin, use.begin), std::min(piece->end, use.end)});
  }
  std::vector<Owned> owners;
  for (auto& [process, windows] : owned) {
    // One process on several devices: what is claimed on any of them.
    const auto is_before = [](const Window& a, const Window& b) { return a.begin < b.begin; };
    if (!std::is_sorted(windows.begin(), windows.end(), is_before))
      std::sort(windows.begin(), windows.end(), is_before);
    Windows apart;
    apart.reserve(windows.size());
    for (const Window& window : windows)
      if (!apart.empty() && window.begin <= apart.back().end)
        apart.back().end = std::max(apart.back().end, window.end);
      else
        apart.push_back(window);
    if (!apart.empty()) owners.push_back({process, std::move(apart)});
  }
  return summarise(job, owners);
}

}  // namespace headroom
