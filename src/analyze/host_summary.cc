// SPDX-License-Identifier: Apache-2.0
#include "analyze/host_summary.h"

#include <algorithm>
#include <set>

#include "model/entities.h"

namespace headroom {

namespace {

struct Means {
  double cpu = 0, main_cpu = 0, delay = 0, io = 0, io_length = 0, read = 0, write = 0, disk = 0;
  double length = 0, samples = 0;
};

// For the part of each interval that lies in the window.
Means means_of(const std::vector<Activity>& list, const Window& window) {
  Means mean;
  for (const Activity& a : list) {
    const double dt = seconds(std::min(a.end, window.end) - std::max(a.begin, window.begin));
    if (dt <= 0) continue;
    mean.length += dt;
    mean.samples += 1;
    mean.cpu += a.cpu * dt;
    mean.main_cpu += a.main_cpu.value_or(std::min(1.0, a.cpu)) * dt;
    mean.delay += a.run_delay * dt;
    if (a.io_delay) mean.io += *a.io_delay * dt, mean.io_length += dt;
    mean.read += a.read_bytes_per_second * dt;
    mean.write += a.write_bytes_per_second * dt;
    mean.disk += a.state == 'D' ? 1 : 0;
  }
  if (mean.length <= 0) return mean;
  for (double* value : {&mean.cpu, &mean.main_cpu, &mean.delay, &mean.read, &mean.write}) *value /= mean.length;
  mean.disk /= mean.samples;
  return mean;
}

void add_owners(const JobView& job, const std::set<SourceId>& owners, const Window& window, HostSummary& summary) {
  double samples = 0, io = 0, io_length = 0;
  for (const SourceId owner : owners) {
    const auto& list = job.did[static_cast<std::size_t>(owner)];
    const Means mean = means_of(list, window);
    if (mean.length <= 0) continue;
    ++summary.owners;
    summary.owner_cpu += mean.main_cpu;
    summary.owner_delay += mean.delay;
    summary.read_rate += mean.read;
    summary.write_rate += mean.write;
    io += mean.io;
    io_length += mean.io_length;
    samples += mean.samples;
    for (const Activity& a : list)
      if (a.end > window.begin && a.begin < window.end) summary.waits[static_cast<std::size_t>(a.wait)] += 1;
  }
  const double count = std::max(1.0, static_cast<double>(summary.owners));
  summary.owner_cpu /= count;
  summary.owner_delay /= count;
  if (io_length > 0) summary.owner_io = io / io_length;
  for (double& share : summary.waits) share /= std::max(1.0, samples);
}

void add_helpers(const JobView& job, const std::set<SourceId>& helpers, const Window& window, HostSummary& summary) {
  for (const SourceId helper : helpers) {
    const Means mean = means_of(job.did[static_cast<std::size_t>(helper)], window);
    if (mean.length <= 0) continue;
    ++summary.helpers;
    summary.helper_cpu += mean.cpu;
    summary.helper_delay += mean.delay;
    summary.helper_disk += mean.disk;
    summary.read_rate += mean.read;
  }
  const double count = std::max(1.0, static_cast<double>(summary.helpers));
  summary.helper_delay /= count;
  summary.helper_disk /= count;
}

void add_machine(const Recording& recording, const Window& window, HostSummary& summary) {
  const auto hosts = recording.all(SourceKind::kHost);
  if (hosts.empty()) return;
  const Host host = host_of(recording.sources[static_cast<std::size_t>(hosts.front())]);
  summary.usable_cores = host.cores_usable.value_or(host.cores);
  const Track& track = recording.tracks[static_cast<std::size_t>(hosts.front())];
  const Column* busy = track.find(Metric::kHostCpuBusy);
  if (!busy) return;
  std::optional<std::size_t> first, last;
  for (std::size_t row = 0; row < track.at.size(); ++row) {
    if (track.at[row] < window.begin || track.at[row] > window.end || !busy->has(row)) continue;
    if (!first) first = row;
    last = row;
  }
  if (!first || track.at[*last] <= track.at[*first]) return;
  summary.busy_cores = to_unit(Metric::kHostCpuBusy, busy->values[*last] - busy->values[*first]) /
                       seconds(track.at[*last] - track.at[*first]);
}

}  // namespace

HostSummary host_summary(const Recording& recording, const JobView& job, const Window& window, Nanos late_from) {
  HostSummary summary;
  std::set<SourceId> owners, helpers;
  for (const ContextUse& use : job.uses)
    if (use.ours && use.process && use.begin < window.end && use.end > window.begin) owners.insert(*use.process);
  for (const SourceId owner : owners)
    for (const SourceId below : descendants(job, owner))
      if (!owners.contains(below)) helpers.insert(below);
  add_owners(job, owners, window, summary);
  add_helpers(job, helpers, window, summary);
  add_machine(recording, window, summary);
  for (const SourceId id : recording.all(SourceKind::kProcess)) {
    if (job.has_job && !process_of(recording.sources[static_cast<std::size_t>(id)]).in_job) continue;
    for (const Activity& a : job.did[static_cast<std::size_t>(id)])
      if (a.end > late_from && a.begin < window.end) summary.late_cpu = std::max(summary.late_cpu, a.cpu);
  }
  return summary;
}

double HostSummary::waiting_in(std::initializer_list<WaitChannel> channels) const {
  double sum = 0;
  for (const WaitChannel channel : channels) sum += waits[static_cast<std::size_t>(channel)];
  return sum;
}

}  // namespace headroom
