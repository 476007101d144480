// SPDX-License-Identifier: Apache-2.0
#include "analyze/ledger.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "analyze/accountant.h"

namespace headroom {

std::int32_t Places::index_of(std::string_view name) {
  if (name.empty()) return -1;
  const auto [entry, is_new] = index_.try_emplace(std::string(name), static_cast<std::int32_t>(names_.size()));
  if (is_new) names_.emplace_back(name);
  return entry->second;
}

DeviceTimes device_times(const Recording& recording, const JobView& job, const Thresholds& limits,
                         std::span<const std::unique_ptr<Evidence>> evidence) {
  DeviceTimes times;
  Places places;
  for (const SourceId id : recording.all(SourceKind::kGpu)) {
    DeviceAccountant accountant(recording, job, id, limits, evidence, places);
    DeviceTime time{id, device_of(recording.sources[static_cast<std::size_t>(id)])};
    time.used = accountant.used_by_job();
    time.spins = accountant.spun_on();
    if (job.has_job && !time.used && time.device.given == false) continue;
    time.slices = accountant.slices();
    times.devices.push_back(std::move(time));
  }
  std::stable_sort(times.devices.begin(), times.devices.end(),
                   [](const auto& a, const auto& b) { return a.device.index < b.device.index; });
  times.places = std::move(places).names();
  return times;
}

void clip(std::vector<Slice>& slices, Nanos begin, Nanos end) {
  std::erase_if(slices, [&](const Slice& slice) { return slice.end <= begin || slice.begin >= end; });
  for (Slice& slice : slices) {
    slice.begin = std::max(slice.begin, begin);
    slice.end = std::min(slice.end, end);
  }
}

Ledger ledger(const std::vector<DeviceTime>& devices, Nanos begin, Nanos end) {
  Ledger sum;
  sum.begin = begin;
  sum.end = std::max(begin, end);
  using Key =
      std::tuple<std::size_t, Account, std::int32_t, std::int32_t, std::int32_t, std::int64_t, Tiers, Confidence>;
  std::map<Key, Nanos> totals;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    sum.devices.push_back(devices[i].device);
    for (const Slice& slice : devices[i].slices) {
      const Nanos ns = std::min(slice.end, sum.end) - std::max(slice.begin, sum.begin);
      if (ns > 0)
        totals[{i, slice.account, slice.phase, slice.task, slice.where, slice.pid, slice.tiers, slice.confidence}] +=
            ns;
    }
  }
  for (const auto& [key, ns] : totals) {
    const auto& [device, account, phase, task, where, pid, tiers, confidence] = key;
    sum.entries.push_back({account, device, pid, phase, tiers, confidence, ns, task, where});
  }
  return sum;
}

}  // namespace headroom
