// SPDX-License-Identifier: Apache-2.0
#include "model/device_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/events.h"

namespace headroom {

namespace {

// The last value; where there is none, the last reason. (A second look moments after the first often gets "no data".)
Reading<std::int64_t> latest(const Column& column) {
  Reading<std::int64_t> why = tl::unexpected(Absent::kNotSampled);
  for (std::size_t row = column.values.size(); row-- > 0;) {
    const auto reading = column.at(row);
    if (reading) return reading;
    if (why.error() == Absent::kNotSampled) why = reading;
  }
  return why;
}

Reading<std::int64_t> latest(const Track& track, Metric metric) {
  const Column* const column = track.find(metric);
  return column == nullptr ? tl::unexpected(Absent::kNotSampled) : latest(*column);
}

DeviceProcess process_on_gpu(const Recording& recording, SourceId id) {
  const auto index = static_cast<std::size_t>(id);
  const GpuContext context = context_of(recording.sources[index]);
  DeviceProcess process;
  process.pid = context.pid;
  process.kind = context.kind;
  process.memory_bytes = latest(recording.tracks[index], Metric::kProcessGpuMemory);
  process.sm_util = latest(recording.tracks[index], Metric::kProcessSmUtil);
  if (!context.start) return process;
  const auto key = fmt::format("{}/{}", context.pid, *context.start);
  if (const auto known = recording.find(SourceKind::kProcess, key)) {
    const Process facts = process_of(recording.sources[static_cast<std::size_t>(*known)]);
    process.name = facts.comm;
    process.user = facts.user;
    process.cmdline = facts.cmdline;
    process.uid = facts.uid;
  }
  return process;
}

}  // namespace

Reading<std::int64_t> DeviceStatus::reading(Metric metric) const {
  const auto found = std::find_if(readings.begin(), readings.end(), [&](const auto& r) { return r.first == metric; });
  return found == readings.end() ? tl::unexpected(Absent::kNotSampled) : found->second;
}

DeviceList device_list_of(const Recording& recording) {
  DeviceList list;
  for (const SourceId id : recording.all(SourceKind::kGpu)) {
    const auto index = static_cast<std::size_t>(id);
    DeviceStatus status;
    status.device = device_of(recording.sources[index]);
    list.driver_version = status.device.driver_version;
    for (const auto& metric : metrics()) {
      if (const Column* const column = recording.tracks[index].find(metric.id)) {
        status.readings.emplace_back(metric.id, latest(*column));
      }
    }
    for (const SourceId process : recording.all(SourceKind::kGpuProcess)) {
      if (recording.sources[static_cast<std::size_t>(process)].parent != id) continue;
      status.processes.push_back(process_on_gpu(recording, process));
    }
    std::sort(status.processes.begin(), status.processes.end(),
              [](const DeviceProcess& a, const DeviceProcess& b) { return a.pid < b.pid; });
    list.devices.push_back(std::move(status));
  }
  std::sort(list.devices.begin(), list.devices.end(),
            [](const DeviceStatus& a, const DeviceStatus& b) { return a.device.index < b.device.index; });
  for (const auto& event : recording.events) {
    if (const auto note = of_event<events::Note>(event); note && !note->text.empty()) list.notes.push_back(note->text);
  }
  return list;
}

}  // namespace headroom
