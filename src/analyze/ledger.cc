// SPDX-License-Identifier: Apache-2.0
#include "analyze/ledger.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyze/accountant.h"
#include "base/fnv.h"
#include "model/visible.h"

namespace headroom {

std::int32_t Places::index_of(std::string_view name) {
  if (name.empty()) return -1;
  const auto known = index_.find(name);
  if (known != index_.end()) return known->second;
  index_.emplace(name, static_cast<std::int32_t>(names_.size()));
  names_.emplace_back(name);
  return static_cast<std::int32_t>(names_.size() - 1);
}

namespace {

// Keys of the GPUs that the mask of the job's first process hides from it. What `run` recorded of each device goes
// before; a job that was recorded while it ran has its environment.
std::set<std::string> hidden_by_mask(const Recording& recording) {
  std::optional<Process> root;
  for (const SourceId id : recording.all(SourceKind::kProcess)) {
    Process process = process_of(recording.sources[static_cast<std::size_t>(id)]);
    if (process.in_job && (!root || process.start < root->start)) root = std::move(process);
  }
  std::set<std::string> hidden;
  if (!root || !root->cuda_visible_devices) return hidden;
  std::vector<Device> devices;
  for (const SourceId id : recording.all(SourceKind::kGpu))
    devices.push_back(device_of(recording.sources[static_cast<std::size_t>(id)]));
  std::stable_sort(devices.begin(), devices.end(), [](const Device& x, const Device& y) { return x.index < y.index; });
  for (const Device& device : devices)
    if (!device.given) hidden.insert(device.uuid);
  for (const std::size_t i : visible_devices(devices, root->cuda_visible_devices, root->cuda_device_order).ordinals)
    hidden.erase(devices[i].uuid);
  return hidden;
}

}  // namespace

DeviceTimes device_times(const Recording& recording, const JobView& job, const Thresholds& limits,
                         std::span<const std::unique_ptr<Evidence>> evidence) {
  DeviceTimes times;
  Places places;
  const std::set<std::string> hidden = hidden_by_mask(recording);
  const std::vector<SourceId> gpus = recording.all(SourceKind::kGpu);
  std::vector<DeviceAccountant> accountants;
  accountants.reserve(gpus.size());
  KernelTimes kernels;
  const AccountedJob all{recording, job, limits, evidence, places};
  for (const SourceId id : gpus) accountants.emplace_back(all, id).add_kernels(kernels);
  for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
    const SourceId id = gpus[gpu];
    DeviceAccountant& accountant = accountants[gpu];
    accountant.divide(kernels);
    DeviceTime time{id, device_of(recording.sources[static_cast<std::size_t>(id)])};
    time.used = accountant.used_by_job();
    time.spins = accountant.spun_on();
    const bool given = time.device.given.value_or(!hidden.contains(time.device.uuid));
    if (job.has_job && !time.used && !given) continue;
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

namespace {

using Key = std::tuple<std::size_t, Account, std::int32_t, std::int32_t, std::int32_t, std::int64_t, Tiers, Confidence>;

// Of a day there are millions of slices and hundreds of keys.
struct HashOfKey {
  std::size_t operator()(const Key& key) const {
    const auto& [device, account, phase, task, where, pid, tiers, confidence] = key;
    std::uint64_t hash = kFnvBasis;
    for (const std::int64_t part : {static_cast<std::int64_t>(device), static_cast<std::int64_t>(account),
                                    std::int64_t{phase}, std::int64_t{task}, std::int64_t{where}, pid})
      hash = fnv1a(static_cast<std::uint64_t>(part), hash);
    return static_cast<std::size_t>(hash);
  }
};

}  // namespace

Ledger ledger(const std::vector<DeviceTime>& devices, Nanos begin, Nanos end) {
  Ledger sum;
  sum.begin = begin;
  sum.end = std::max(begin, end);
  std::unordered_map<Key, Nanos, HashOfKey> totals;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    sum.devices.push_back(devices[i].device);
    for (const Slice& slice : devices[i].slices) {
      const Nanos ns = std::min(slice.end, sum.end) - std::max(slice.begin, sum.begin);
      if (ns > 0)
        totals[{i, slice.account, slice.phase, slice.task, slice.where, slice.pid, slice.tiers, slice.confidence}] +=
            ns;
    }
  }
  std::vector<std::pair<Key, Nanos>> in_order(totals.begin(), totals.end());
  std::sort(in_order.begin(), in_order.end());
  for (const auto& [key, ns] : in_order) {
    const auto& [device, account, phase, task, where, pid, tiers, confidence] = key;
    sum.entries.push_back({account, device, pid, phase, tiers, confidence, ns, task, where});
  }
  return sum;
}

}  // namespace headroom
