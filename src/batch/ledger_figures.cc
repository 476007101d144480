// SPDX-License-Identifier: Apache-2.0
#include "batch/ledger_figures.h"

#include <map>
#include <string_view>

namespace headroom::batch {

namespace {

bool of_the_batch(Account account) { return is_busy(account) && account != Account::kForeign; }

// One attempt of a task follows another: a slice belongs to the last that had begun by its middle.
std::size_t attempt_at(const std::vector<std::size_t>& of_task, std::span<const AttemptSpan> attempts, Nanos at) {
  std::size_t found = of_task.front();
  for (const std::size_t i : of_task)
    if (attempts[i].start <= at) found = i;
  return found;
}

}  // namespace

void put_device_use(const Explanation& explanation, BatchSummary& summary) {
  const Ledger& ledger = explanation.ledger;
  if (ledger.span() <= 0) return;
  for (BatchSummary::DeviceUse& device : summary.devices)
    for (std::size_t i = 0; i < ledger.devices.size(); ++i)
      if (ledger.devices[i].uuid == device.uuid)
        device.busy_ratio = static_cast<double>(ledger.busy(i)) / static_cast<double>(ledger.span());
}

std::vector<AttemptGpuTime> gpu_times(const Explanation& explanation, std::span<const AttemptSpan> attempts) {
  std::map<std::string_view, std::vector<std::size_t>> by_task;
  for (std::size_t i = 0; i < attempts.size(); ++i) by_task[attempts[i].task].push_back(i);
  std::vector<Nanos> sums(attempts.size());
  for (const auto& device : explanation.slices)
    for (const Slice& slice : device) {
      // Of an attempt that nobody saw there, what is booked for it may be another's.
      if (slice.task < 0 || !of_the_batch(slice.account) || slice.tiers.has("S")) continue;
      const auto task = by_task.find(explanation.ledger.tasks[static_cast<std::size_t>(slice.task)]);
      if (task == by_task.end()) continue;
      const Nanos middle = slice.begin + (slice.end - slice.begin) / 2;
      sums[attempt_at(task->second, attempts, middle)] += slice.end - slice.begin;
    }
  std::vector<AttemptGpuTime> times;
  for (std::size_t i = 0; i < attempts.size(); ++i)
    if (sums[i] > 0 || attempts[i].kernels_seen) times.push_back({.attempt = attempts[i].attempt, .gpu_time = sums[i]});
  return times;
}

}  // namespace headroom::batch
