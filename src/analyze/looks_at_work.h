// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "analyze/ledger.h"
#include "analyze/stack_evidence.h"

namespace headroom {

// A job, what the stacks of its processes show, and where the time of its devices went.
struct WatchedJob {
  const StackView& stacks;
  const JobView& job;
  const std::vector<DeviceTime>& devices;
};

// The processes on a device whose stacks are known, by pid.
[[nodiscard]] inline std::map<std::int64_t, SourceId> owners_on(const DeviceTime& device, const WatchedJob& watched) {
  std::map<std::int64_t, SourceId> owners;
  for (const ContextUse& use : watched.job.uses)
    if (use.ours && use.process && use.device == device.source && watched.stacks.looks.contains(*use.process))
      owners[use.pid] = *use.process;
  return owners;
}

// Each slice of the time from the first kernel to the last of a process whose stacks are known, with its looks.
template <class Visit>
void visit_work(const DeviceTime& device, const WatchedJob& watched, const Visit& visit) {
  struct Owner {
    SourceId process;
    std::span<const ListRow> left;  // of its looks: slices come in order of time
  };
  std::map<std::int64_t, Owner> owners;
  for (const auto& [pid, process] : owners_on(device, watched))
    owners.emplace(pid, Owner{process, watched.stacks.looks.at(process).all()});
  const auto take_until = [](std::span<const ListRow>& left, Nanos at) {
    std::size_t count = 0;
    while (count < left.size() && left[count].at <= at) ++count;
    const auto taken = left.first(count);
    left = left.subspan(count);
    return taken;
  };
  for (const Slice& slice : device.slices) {
    const auto owner = owners.find(slice.pid);
    if (owner == owners.end() || slice.account == Account::kStartup || slice.account == Account::kTeardown) continue;
    (void)take_until(owner->second.left, slice.begin);
    visit(owner->second.process, slice, take_until(owner->second.left, slice.end));
  }
}

// Each slice without a kernel of a process whose stacks are known.
template <class Visit>
void visit_idle(const DeviceTime& device, const WatchedJob& watched, const Visit& visit) {
  const auto owners = owners_on(device, watched);
  for (const Slice& slice : device.slices) {
    const auto owner = owners.find(slice.pid);
    if (owner != owners.end() && !is_busy(slice.account)) visit(owner->second, slice);
  }
}

}  // namespace headroom
