// SPDX-License-Identifier: Apache-2.0
#include "diagnose/host_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/human.h"

namespace headroom::diagnose {

namespace {

struct Means {
  double cpu = 0, main_cpu = 0, delay = 0, io = 0, read = 0, write = 0, disk = 0;
};

Means means_of(const std::vector<Activity>& list) {
  Means mean;
  double length = 0, looks = 0;
  for (const Activity& a : list) {
    const double dt = seconds(a.end - a.begin);
    length += dt;
    looks += 1;
    mean.cpu += a.cpu * dt;
    mean.main_cpu += a.main_cpu.value_or(std::min(1.0, a.cpu)) * dt;
    mean.delay += a.run_delay * dt;
    mean.io += a.io_delay * dt;
    mean.read += a.read_bytes_per_second * dt;
    mean.write += a.write_bytes_per_second * dt;
    mean.disk += a.state == 'D' ? 1 : 0;
  }
  if (length <= 0) return {};
  for (double* value : {&mean.cpu, &mean.main_cpu, &mean.delay, &mean.io, &mean.read, &mean.write}) *value /= length;
  mean.disk /= looks;
  return mean;
}

}  // namespace

HostSummary host_summary(const Case& c) {
  HostSummary summary;
  std::set<SourceId> drivers, helpers;
  for (const ContextUse& use : c.job.uses)
    if (use.ours && use.process) drivers.insert(*use.process);
  double looks = 0;
  for (const SourceId driver : drivers) {
    const auto list = activities(c.recording, driver);
    if (list.empty()) continue;
    ++summary.drivers;
    const Means mean = means_of(list);
    summary.driver_cpu += mean.main_cpu;
    summary.driver_delay += mean.delay;
    summary.driver_io += mean.io;
    summary.read_rate += mean.read;
    summary.write_rate += mean.write;
    for (const Activity& a : list) summary.waits[static_cast<std::size_t>(a.wait)] += 1;
    looks += static_cast<double>(list.size());
    for (const SourceId helper : descendants(c.job, driver))
      if (!drivers.contains(helper)) helpers.insert(helper);
  }
  for (const SourceId helper : helpers) {
    const auto list = activities(c.recording, helper);
    if (list.empty()) continue;
    const Means mean = means_of(list);
    ++summary.helpers;
    summary.helper_cpu += mean.cpu;
    summary.helper_delay += mean.delay;
    summary.helper_disk += mean.disk;
    summary.read_rate += mean.read;
  }
  const double drivers_count = std::max(1.0, static_cast<double>(summary.drivers));
  const double helpers_count = std::max(1.0, static_cast<double>(summary.helpers));
  for (double* value : {&summary.driver_cpu, &summary.driver_delay, &summary.driver_io}) *value /= drivers_count;
  for (double* value : {&summary.helper_delay, &summary.helper_disk}) *value /= helpers_count;
  for (double& share : summary.waits) share /= std::max(1.0, looks);
  return summary;
}

double waits(const HostSummary& s, std::initializer_list<WaitChannel> channels) {
  double sum = 0;
  for (const WaitChannel channel : channels) sum += s.waits[static_cast<std::size_t>(channel)];
  return sum;
}

std::string driver_sentence(const HostSummary& s) {
  return fmt::format(
      "the main thread of the process on the GPU used {} of a core, wanted one in vain for {} of the time and was "
      "blocked on storage for {}",
      human_percent(s.driver_cpu), human_percent(s.driver_delay), human_percent(s.driver_io));
}

std::string helper_sentence(const HostSummary& s) {
  if (s.helpers == 0) return "it has no worker processes";
  return fmt::format("its {} worker process{} used {:.1f} cores together, waiting for a core {} of the time", s.helpers,
                     s.helpers == 1 ? "" : "es", s.helper_cpu, human_percent(s.helper_delay));
}

std::string storage_sentence(const HostSummary& s) {
  return fmt::format("read from storage: {}/s, written: {}/s", human_bytes(static_cast<std::int64_t>(s.read_rate)),
                     human_bytes(static_cast<std::int64_t>(s.write_rate)));
}

double usable_cores(const Recording& recording) {
  const auto hosts = recording.all(SourceKind::kHost);
  if (hosts.empty()) return 0;
  const Host host = host_of(recording.sources[static_cast<std::size_t>(hosts.front())]);
  return host.cores_usable.value_or(host.cores);
}

std::optional<double> busy_cores(const Recording& recording) {
  const auto hosts = recording.all(SourceKind::kHost);
  if (hosts.empty()) return std::nullopt;
  const Track& track = recording.tracks[static_cast<std::size_t>(hosts.front())];
  const Column* busy = track.find(Metric::kHostCpuBusy);
  if (!busy || track.at.size() < 2 || !busy->has(0) || !busy->has(track.at.size() - 1)) return std::nullopt;
  const double length = seconds(track.at.back() - track.at.front());
  if (length <= 0) return std::nullopt;
  return to_unit(Metric::kHostCpuBusy, busy->values.back() - busy->values.front()) / length;
}

}  // namespace headroom::diagnose
