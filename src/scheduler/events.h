// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "scheduler/setup.h"
#include "scheduler/task_graph.h"

// What a planner is told, and what it answers.
namespace headroom::scheduler {

// --- events ---
// Tasks come in one batch, or as they are read; what comes `after` a task may be added before it.
struct TasksAdded {
  std::vector<PlannedTask> tasks;
  bool more = false;  // further tasks will come: a group in `after_groups` is not complete yet
};
struct GroupLimit {
  GroupIndex group = 0;
  std::optional<int> max_running;
};
struct AttemptStarted {
  AttemptId attempt = 0;
};
// `outcome` is what the executor saw. A stopped attempt may be reported as kFailed or kInterrupted: the planner knows
// why it asked for the stop. kSucceeded is believed even then.
struct AttemptEnded {
  AttemptId attempt = 0;
  AttemptOutcome outcome = AttemptOutcome::kSucceeded;
  std::optional<std::int64_t> peak_gpu_bytes;  // per GPU, the largest
  std::optional<std::int64_t> peak_host_bytes;
  std::optional<Nanos> startup, gpu_time;  // until its first kernel; of its own kernels, as far as they were seen
  std::optional<Nanos> cpu_time;           // of all its processes
  std::optional<Nanos> took_alone;         // the same task, with a GPU of this model to itself, in an earlier batch
  std::string reason;                      // in words, for the task's end
};
struct GpuReading {
  GpuIndex gpu = 0;
  std::optional<std::int64_t> others_bytes;  // memory used by processes that are not the batch's
  bool others_compute = false;               // another user's compute process is on it
};
// What is absent could not be read. Counters are totals since the attempt's start.
struct AttemptReading {
  AttemptId attempt = 0;
  std::optional<std::int64_t> gpu_bytes;   // now, on its (fullest) GPU
  std::optional<double> gpu_util_ratio;    // its own kernels, since the last reading
  std::optional<double> cores;             // CPU time per time, its whole tree, since the last reading
  std::optional<double> cores_wanted;      // with the time that it waited for a core; absent: as `cores`
  std::optional<double> steps;             // done so far, where the job reports them
  std::optional<std::int64_t> host_bytes;  // now
  std::optional<std::int64_t> io_bytes;    // read and written so far
  bool in_startup = false;                 // no kernel yet
};
struct Readings {
  std::vector<GpuReading> gpus;
  std::vector<AttemptReading> attempts;
  std::optional<std::int64_t> host_available_bytes;
};
struct GpuLost {
  GpuIndex gpu = 0;
  std::string reason;
};
struct GpuBack {
  GpuIndex gpu = 0;
};
struct CancelTask {
  TaskIndex task = 0;
};
struct Drain {};  // start nothing more; what runs may finish
struct Stop {};   // and stop what runs
struct Tick {};
using Event = std::variant<TasksAdded, GroupLimit, AttemptStarted, AttemptEnded, Readings, GpuLost, GpuBack, CancelTask,
                           Drain, Stop, Tick>;

// --- actions ---
struct StartAttempt {
  AttemptId attempt = 0;
  TaskIndex task = 0;
  int number = 1;
  std::vector<GpuIndex> gpus;           // none for a task on a slot
  int slot = 0;                         // smallest number that no running attempt has
  std::int64_t reserved_gpu_bytes = 0;  // per GPU
  bool probe = false;                   // first of its group: shows what the others need
  bool alone = false;
};
struct StopAttempt {
  AttemptId attempt = 0;
  StopReason reason = StopReason::kCancelled;
};
// How long what an attempt has done would have taken with a GPU to itself: the one estimate of it.
struct AloneTime {
  double done_seconds = 0;
  double speed = 1;      // now, relative to alone, as predicted of the company it has
  bool measured = true;  // false: some of its work is only predicted
  bool counted = false;  // all of it by its steps
  bool whole = false;    // nothing of it is reckoned: no other task and no other user was on its GPUs at any time
};
// The attempt's final outcome, after the planner's judgement; one for each StartAttempt.
struct CloseAttempt {
  AttemptId attempt = 0;
  TaskIndex task = 0;
  AttemptOutcome outcome = AttemptOutcome::kSucceeded;
  AloneTime alone;
  // Of its group on that GPU model, on the average of a life, by those that were seen alone in this batch.
  std::optional<double> group_load, group_cores;
};
struct QuarantineGpu {
  GpuIndex gpu = 0;
  std::string reason;
};
using Action = std::variant<StartAttempt, StopAttempt, CloseAttempt, RequeueTask, EndTask, QuarantineGpu>;

}  // namespace headroom::scheduler
