// SPDX-License-Identifier: Apache-2.0
#include "scheduler/gpu_faults.h"

#include <algorithm>

namespace headroom::scheduler {

namespace {

constexpr std::size_t kFailuresInARow = 4;  // of different tasks, on one GPU only
constexpr int kSuccessesElsewhere = 2;      // of a failed task's group

}  // namespace

std::optional<std::size_t> GpuFaults::note(GpuIndex gpu, TaskIndex task, GroupIndex group, AttemptOutcome outcome) {
  Record& here = gpus_[static_cast<std::size_t>(gpu)];
  if (outcome == AttemptOutcome::kSucceeded) {
    here = {};
    for (Record& other : gpus_)
      if (&other != &here && !other.failures.empty()) ++other.successes_elsewhere[group];
    return std::nullopt;
  }
  if (outcome != AttemptOutcome::kFailed) return std::nullopt;
  const auto same = [&](const auto& failure) { return failure.first == task; };
  if (std::none_of(here.failures.begin(), here.failures.end(), same)) here.failures.emplace_back(task, group);
  const auto good_elsewhere = [&](const auto& failure) {
    const auto found = here.successes_elsewhere.find(failure.second);
    return found != here.successes_elsewhere.end() && found->second >= kSuccessesElsewhere;
  };
  const auto odd = std::count_if(here.failures.begin(), here.failures.end(), good_elsewhere);
  if (static_cast<std::size_t>(odd) < kFailuresInARow) return std::nullopt;
  here.failures.clear();
  return static_cast<std::size_t>(odd);
}

}  // namespace headroom::scheduler
