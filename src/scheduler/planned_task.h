// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "base/time.h"
#include "model/batch.h"

namespace headroom::scheduler {

// Position in the list of groups that the batch's owner keeps.
using GroupIndex = int;

// A task as the scheduler needs it; plan_tasks() makes them from TaskSpecs.
struct PlannedTask {
  TaskIndex task = 0;  // added in this order, without gaps
  GroupIndex group = 0;
  ResourceRequest resources;
  RetryPolicy retry;
  std::optional<Nanos> timeout, hang_timeout;
  int priority = 0;
  std::vector<TaskIndex> after;  // may be larger than `task`; no cycles (order.h rejects them)
  std::vector<GroupIndex> after_groups;
  std::optional<Nanos> expected;        // duration alone, from earlier batches only
  TaskState state = TaskState::kReady;  // an ended one (resume): counts for those that come after it, never runs
  int attempts_before = 0;              // resume: the next attempt's number is one more
  int failures_before = 0;              // resume: retries used up
};

// What tasks have in common; most batches have a handful of these.
struct TaskProfile {
  GroupIndex group = 0;
  ResourceRequest resources;
  RetryPolicy retry;
  std::optional<Nanos> timeout, hang_timeout;
};

}  // namespace headroom::scheduler
