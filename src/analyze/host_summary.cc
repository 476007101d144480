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
  void add(const std::optional<double>& value, double dt) {
    if (value) add(*value, dt);
  }
  [[nodiscard]] double value() const { return length > 0 ? sum / length : 0; }
  [[nodiscard]] std::optional<double> known() const { return length > 0 ? std::optional(value()) : std::nullopt; }
};

struct Means {
  Mean cpu, main_cpu, delay, io, read, passed, passes, write, unseen, faults;
  double inside = 0, readings = 0;  // seconds of the readings that are summed up, and of these readings
};

using Windows = std::vector<Window>;  // joined()

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

// `weight`: the share of its interval that is summed up.
void add_look(const Activity& a, double weight, Looks& looks) {
  if (a.state != '?') looks.states += weight, looks.blocked += a.state == 'D' ? weight : 0;
  if (a.wait == WaitChannel::kUnknown) return;
  looks.count += weight, looks.in[static_cast<std::size_t>(a.wait)] += weight;
  if (a.waits_for == kNoList) return;
  Looks::Named& named = looks.waits[{a.wait, a.waits_for}];
  named.count += weight, named.seconds += seconds(a.end - a.begin);
  named.sent += static_cast<double>(a.sent), named.received += static_cast<double>(a.received);
}

Means means_of(const std::vector<Activity>& list, const Windows& windows, Looks& looks) {
  Means mean;
  within(list, windows, [&](const Activity& a, double dt) {
    mean.inside += dt, mean.readings += seconds(a.end - a.begin);
    mean.cpu.add(a.cpu, dt);
    mean.main_cpu.add(a.main_cpu.value_or(std::min(1.0, a.cpu)), dt);
    mean.delay.add(a.run_delay, dt);
    mean.unseen.add(a.unseen_cpu, dt);
    mean.io.add(a.io_delay, dt);
    mean.read.add(a.read_bytes_per_second, dt);
    mean.passed.add(a.passed_bytes_per_second, dt);
    if (const auto passed = a.passed_bytes_per_second) mean.passes.add(*passed >= kPasses ? 1.0 : 0.0, dt);
    mean.write.add(a.write_bytes_per_second, dt);
    mean.faults.add(a.major_faults_per_second, dt);
    add_look(a, dt / seconds(a.end - a.begin), looks);
  });
  return mean;
}

void sum_up(std::optional<double>& sum, const Mean& mean, double weight = 1) {
  if (mean.length > 0) sum = sum.value_or(0) + mean.value() * weight;
}

struct Owned {
  SourceId process;
  Windows windows;
};

// When something began (1) or ended (-1).
using Lives = std::vector<std::pair<Nanos, int>>;

std::size_t most_at_once(Lives lives) {
  std::sort(lives.begin(), lives.end());
  int now = 0, most = 0;
  for (const auto& [at, change] : lives) most = std::max(most, now += change);
  return static_cast<std::size_t>(most);
}

// Adds up what owners and their helpers did.
class Summing {
 public:
  Summing(const JobView& job, const std::vector<Owned>& owners) : job_(job) {
    for (const Owned& owner : owners) seen_.insert(owner.process);
    for (const Owned& owner : owners) add(owner);
  }
  [[nodiscard]] HostSummary summary() const;

 private:
  void add(const Owned& owner);
  void add_owner(const Means& mean);
  void add_helpers(const Owned& owner, double owner_length);
  void add_machine(const Windows& windows);

  const JobView& job_;
  std::set<SourceId> seen_;
  HostSummary sum_;
  Mean cpu_, delay_, io_, threads_, helper_delay_, busy_, pressure_, memory_, group_, swapped_;
  double inside_ = 0, readings_ = 0;
};

void Summing::add(const Owned& owner) {
  const Means mean = means_of(job_.did[static_cast<std::size_t>(owner.process)], owner.windows, sum_.owner_looks);
  inside_ += mean.inside, readings_ += mean.readings;
  if (mean.cpu.length > 0) add_owner(mean);
  add_helpers(owner, mean.cpu.length);
  add_machine(owner.windows);
}

void Summing::add_owner(const Means& mean) {
  const double all = mean.cpu.value(), wanted = all + mean.delay.value();
  sum_.least_owner_cpu = sum_.owners == 0 ? wanted : std::min(sum_.least_owner_cpu, wanted);
  sum_.most_owner_cpu = std::max(sum_.most_owner_cpu, wanted);
  ++sum_.owners;
  // By how long each was there: one that was seen for a moment says little of this time.
  cpu_.add(mean.main_cpu.value(), mean.cpu.length);
  delay_.add(mean.delay.value(), mean.cpu.length);
  threads_.add(std::max(0.0, all - mean.main_cpu.value()), mean.cpu.length);
  io_.add(mean.io.known(), mean.io.length);
  sum_up(sum_.owner_read, mean.read);
  sum_up(sum_.owner_passed, mean.passed);
  sum_.owner_passes = std::max(sum_.owner_passes, mean.passes.value());
  sum_up(sum_.owner_write, mean.write);
  sum_up(sum_.major_faults, mean.faults);
  sum_.unseen_cpu += mean.unseen.value();
}

// Each counts for as long as it lived: one that follows another does not double its work.
void Summing::add_helpers(const Owned& owner, double owner_length) {
  std::set<SourceId> helpers;
  for (const SourceId below : descendants(job_, owner.process))
    if (seen_.insert(below).second) helpers.insert(below);
  // The most that lived at once: of those that stay, or of all where none does. A program that a worker runs, and that
  // is gone at the next look, is no further worker.
  constexpr Nanos kStays = kSecond;
  Lives lives, stays;
  for (const SourceId helper : helpers) {
    const auto& list = job_.did[static_cast<std::size_t>(helper)];
    const Means mean = means_of(list, owner.windows, sum_.helper_looks);
    if (mean.cpu.length <= 0) continue;
    // When it began is known; that it is gone is only noticed at a reading, and the next one may have begun by then.
    const Nanos begin = list.front().begin, last_seen = std::max(begin + 1, list.back().begin);
    for (Lives* of : {&lives, list.back().end - begin >= kStays ? &stays : nullptr})
      if (of) of->insert(of->end(), {{begin, 1}, {last_seen, -1}});
    const double lived = owner_length > 0 ? std::min(1.0, mean.cpu.length / owner_length) : 1;
    sum_.helper_cpu += mean.cpu.value() * lived;
    sum_up(sum_.helper_read, mean.read, lived);
    sum_up(sum_.major_faults, mean.faults, lived);
    helper_delay_.add(mean.delay.value(), mean.cpu.length);
  }
  sum_.helpers += most_at_once(stays.empty() ? std::move(lives) : std::move(stays));
}

void Summing::add_machine(const Windows& windows) {
  within(job_.machine, windows, [&](const MachineActivity& machine, double dt) {
    busy_.add(machine.busy_cores, dt);
    pressure_.add(machine.io_pressure, dt);
    memory_.add(machine.memory_pressure, dt);
    swapped_.add(machine.swapped_in_pages_per_second, dt);
  });
  within(job_.group, windows,
         [&](const MachineActivity& of_group, double dt) { group_.add(of_group.memory_pressure, dt); });
}

HostSummary Summing::summary() const {
  HostSummary summary = sum_;
  if (readings_ > 0) summary.of_readings = inside_ / readings_;
  summary.owner_cpu = cpu_.value();
  summary.owner_delay = delay_.value();
  summary.owner_threads = threads_.value();
  summary.owner_io = io_.known();
  summary.helper_cpu += summary.unseen_cpu;
  summary.helper_delay = helper_delay_.value();
  summary.usable_cores = job_.usable_cores;
  summary.machine_cores = job_.machine_cores;
  summary.busy_cores = busy_.known();
  summary.io_pressure = pressure_.known();
  summary.memory_pressure = memory_.known();
  summary.group_pressure = group_.known();
  summary.swapped_in = swapped_.known();
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
  HostSummary summary = Summing(job, owners).summary();
  if (owners.empty()) {
    Mean busy;
    within(job.machine, {window}, [&](const MachineActivity& machine, double dt) { busy.add(machine.busy_cores, dt); });
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
  for (auto& [process, windows] : owned)  // on several devices: what is claimed on any of them
    if (!windows.empty()) owners.push_back({process, joined(std::move(windows))});
  return Summing(job, owners).summary();
}

}  // namespace headroom
