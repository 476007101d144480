// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/batch.h"
#include "model/batch_progress.h"
#include "scheduler/planner.h"

namespace headroom::batch {

enum class PinBy { kUuid, kIndex, kNothing };

struct BatchOptions {
  std::string folder;
  std::vector<TaskSpec> tasks;
  std::vector<GroupSpec> group_limits;
  std::vector<std::string> fingerprints;  // of the scripts that each task names; kept with a success
  std::vector<BatchGpu> gpus;
  PinBy pin = PinBy::kUuid;         // kNothing: Headroom leaves CUDA_VISIBLE_DEVICES alone (--gpus none)
  scheduler::PlannerSetup planner;  // gpus and first_attempt are filled in
  bool stop_misplaced = false;
  int max_failures = 0;               // so many failed tasks, and nothing more is started; 0: any number
  bool gpu_processes_visible = true;  // false: in a container the driver's pids are not ours
  std::string driver_version, git_commit;
  std::optional<bool> git_dirty;
  // Provenance that others know how to get; may be empty. The second fills in metrics and parameters from the log.
  std::function<std::vector<std::pair<std::string, std::string>>(const TaskSpec&)> inspect_inputs;
  // These read files, on another thread and perhaps after the batch's end.
  std::function<void(const TaskSpec&, Attempt&)> inspect_log;
  std::function<std::vector<std::string>(const TaskSpec&)> missing_outputs;
  // How many steps the attempt has done, by its log so far; may be empty.
  std::function<std::optional<double>(const Attempt&)> count_steps;
  // Nobody said which lines are steps: what trainers print is kept of an attempt, and no speed is measured by it, for
  // its bars may be of several things.
  bool steps_only_kept = false;
  // For those who follow what is printed; may be empty. The first has a path of the log that only this process can
  // read.
  std::function<void(const TaskSpec&, const Attempt&)> on_running, on_exit;
  // A task has ended for good, or one that is added had succeeded before; may be empty. By then its end waits to be
  // written into the journal.
  std::function<void(const TaskSpec&, TaskState)> on_task_end;
  // Whether tasks may be added though all have ended: then the batch goes on. May be empty: no.
  std::function<bool()> more_may_come;
  // For the history across batches: a success, and how many times longer than alone it took because of those beside it,
  // and what the planner knew of it at its end. The second: how long the same task took alone in an earlier batch.
  std::function<void(const TaskSpec&, const Attempt&, const std::string& gpu_model, double stretch,
                     const scheduler::CloseAttempt&)>
      learn;
  std::function<std::optional<Nanos>(const TaskSpec&, const std::string& gpu_model)> took_alone;
};

}  // namespace headroom::batch
