// SPDX-License-Identifier: Apache-2.0
#include "analyze/worker_code.h"

#include <algorithm>
#include <map>
#include <set>

namespace headroom {

WorkerLooks worker_looks(const StackView& stacks, const JobView& job, const std::vector<DeviceTime>& devices) {
  WorkerLooks seen;
  std::map<std::string, std::int32_t> numbers;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    std::set<SourceId> workers;
    for (const ContextUse& use : job.uses)
      if (use.ours && use.process && use.device == devices[i].source)
        for (const SourceId id : descendants(job, *use.process))
          if (!job.holds[static_cast<std::size_t>(id)] && stacks.looks.contains(id)) workers.insert(id);
    const std::size_t first = seen.looks.size();
    for (const SourceId id : workers)
      for (const Slice& slice : devices[i].slices) {
        if (is_busy(slice.account)) continue;
        for (const StackLook& look : looks_within(stacks.looks.at(id), slice.begin, slice.end)) {
          const stacks::StackKind& kind = stacks.kinds[look.kind];
          std::int32_t place = -1;
          if (!kind.waits && kind.family != stacks::Family::kLoaderWait) {
            const auto [known, fresh] = numbers.try_emplace(kind.where, static_cast<std::int32_t>(seen.places.size()));
            if (fresh) seen.places.push_back(kind.where);
            place = known->second;
          }
          seen.looks.push_back({i, look.at, place});
        }
      }
    std::sort(seen.looks.begin() + static_cast<std::ptrdiff_t>(first), seen.looks.end(),
              [](const WorkerLook& x, const WorkerLook& y) { return x.at < y.at; });
  }
  return seen;
}

namespace {

// The processes on a device whose stacks are known, by pid.
std::map<std::int64_t, SourceId> owners_on(const DeviceTime& device, const StackView& stacks, const JobView& job) {
  std::map<std::int64_t, SourceId> owners;
  for (const ContextUse& use : job.uses)
    if (use.ours && use.process && use.device == device.source && stacks.looks.contains(*use.process))
      owners[use.pid] = *use.process;
  return owners;
}

}  // namespace

CodeShare kernel_waits(const StackView& stacks, const JobView& job, const std::vector<DeviceTime>& devices) {
  std::map<std::string, double> looks_at;
  double all = 0;
  for (const DeviceTime& device : devices) {
    const auto owners = owners_on(device, stacks, job);
    for (const Slice& slice : device.slices) {
      const auto owner = owners.find(slice.pid);
      if (owner == owners.end() || slice.account == Account::kStartup || slice.account == Account::kTeardown) continue;
      for (const StackLook& look : looks_within(stacks.looks.at(owner->second), slice.begin, slice.end)) {
        const stacks::StackKind& kind = stacks.kinds[look.kind];
        all += 1;
        if (kind.busy == stacks::Busy::kWaitsForKernels) looks_at[kind.where] += 1;
      }
    }
  }
  const auto most = std::max_element(looks_at.begin(), looks_at.end(),
                                     [](const auto& x, const auto& y) { return x.second < y.second; });
  return most == looks_at.end() ? CodeShare{} : CodeShare{most->first, most->second / all};
}

std::vector<ThreadCode> thread_code(const StackView& stacks, const JobView& job,
                                    const std::vector<DeviceTime>& devices) {
  struct Seen {
    std::map<std::string, double> looks_at;
    double all = 0, with_interpreter = 0;
  };
  std::map<Account, Seen> by_account;
  for (const DeviceTime& device : devices) {
    const auto owners = owners_on(device, stacks, job);
    for (const Slice& slice : device.slices) {
      const auto owner = owners.find(slice.pid);
      if (owner == owners.end() || is_busy(slice.account)) continue;
      Seen& seen = by_account[slice.account];
      for (const StackLook& look : looks_within(stacks.looks.at(owner->second), slice.begin, slice.end)) {
        seen.all += 1;
        if (look.beside) seen.looks_at[stacks.kinds[*look.beside].where] += 1;
        if (look.beside && look.beside_has_interpreter) seen.with_interpreter += 1;
      }
    }
  }
  std::vector<ThreadCode> code;
  for (const auto& [account, seen] : by_account) {
    const auto most = std::max_element(seen.looks_at.begin(), seen.looks_at.end(),
                                       [](const auto& x, const auto& y) { return x.second < y.second; });
    if (most == seen.looks_at.end()) continue;
    code.push_back({account, most->first, most->second / seen.all, seen.with_interpreter / seen.all});
  }
  return code;
}

}  // namespace headroom
