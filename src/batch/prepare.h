// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "batch/choose_gpus.h"
#include "batch/executor/guardian.h"
#include "batch/history.h"
#include "batch/identity.h"
#include "batch/journal.h"
#include "batch/options.h"
#include "batch/place.h"
#include "batch/request.h"
#include "batch/say.h"
#include "scheduler/order.h"
#include "tasks/task_list.h"

namespace headroom::batch {

// A batch on its way from what was asked for to its first attempt. The functions below fill it in, in their order.
struct Prepared {
  tasks::TaskSet set;
  scheduler::TaskPlan plan;
  std::string folder;
  Place place;
  std::unique_ptr<Journal> journal;
  std::optional<GitState> git;
  std::vector<KnownTask> known;  // what the journal knows of each task
  GpuChoice gpus;
  History history;
  std::string history_path;  // "": nowhere to keep it
  std::vector<std::string> fingerprints;
  std::size_t earlier = 0;  // tasks that succeeded before this run
};

// The tasks, their order and the batch's folder; touches nothing.
[[nodiscard]] Result<Prepared> read_batch(const Request& request);
// `command`: for people, what goes on with the batch. Stops what an earlier run has left behind.
[[nodiscard]] Result<void> open_journal(Prepared& batch, const std::string& command, Guardian& guardian, Nanos grace,
                                        const Say& say);
// Instead, for a plan that is only shown: the journal is read, if there is one.
[[nodiscard]] Result<void> look_into_journal(Prepared& batch, const Request& request, const Say& say);
// The GPUs, and how long tasks took on such in earlier batches.
[[nodiscard]] Result<void> settle_places(Prepared& batch, const Request& request, host::TreeReader& tree,
                                         const Say& say);
// What need not run again; says what has changed since it ran. kNotFound: a task that is to run again does not exist.
[[nodiscard]] Result<void> compare_with_earlier(Prepared& batch, const Request& request, const Say& say);
// Takes the tasks along. What tasks teach goes into `batch`, which has to outlive the options.
[[nodiscard]] BatchOptions options_of(Prepared& batch, const Request& request, const Say& say);

}  // namespace headroom::batch
