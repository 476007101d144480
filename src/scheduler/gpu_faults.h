// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/setup.h"

namespace headroom::scheduler {

// Finds the GPU on which one task after another fails, while others of the same groups succeed elsewhere: it would
// eat the queue.
class GpuFaults {
 public:
  explicit GpuFaults(std::size_t gpus) : gpus_(gpus) {}

  // Takes in how an attempt ended that had one GPU. Returns how many tasks in a row speak against that GPU, where they
  // are enough.
  [[nodiscard]] std::optional<std::size_t> note(GpuIndex gpu, TaskIndex task, GroupIndex group, AttemptOutcome outcome);
  void forget(GpuIndex gpu) { gpus_[static_cast<std::size_t>(gpu)].failures.clear(); }

 private:
  struct Record {
    std::vector<std::pair<TaskIndex, GroupIndex>> failures;  // in a row, of different tasks
    std::map<GroupIndex, int> successes_elsewhere;           // of these groups, since that row began
  };
  std::vector<Record> gpus_;
};

}  // namespace headroom::scheduler
