// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/decision.h"
#include "scheduler/setup.h"

// The tasks of a batch and what they wait for: dependencies, groups, retries. Pure, and knows neither GPUs nor hosts:
// whoever places tasks takes those that are ready, calls start(), and hands in a Decision when the attempt has ended.
namespace headroom::scheduler {

struct BatchCounts {
  std::int64_t total = 0, waiting = 0, ready = 0, running = 0, backing_off = 0, succeeded = 0, failed = 0, skipped = 0,
               cancelled = 0;
  std::int64_t ready_for_gpu = 0;  // of those ready: that want a GPU
};

// The task will run again, not before `at`.
struct RequeueTask {
  TaskIndex task = 0;
  AttemptOutcome after = AttemptOutcome::kFailed;
  Nanos at = 0;
  std::int64_t reserved_gpu_bytes = 0;  // its next reservation; 0: not changed
  bool alone = false;                   // on a GPU of its own
};
// The task's end; one per task, except those that a drain or a stop leaves for a resume.
struct EndTask {
  TaskIndex task = 0;
  TaskState state = TaskState::kSucceeded;
  std::string reason;
};

// The changes that one event led to. `ready` is to be taken in before `withdrawn`: a task may be in both.
struct TaskChanges {
  std::vector<TaskIndex> ready;                            // may start from now on
  std::vector<TaskIndex> withdrawn;                        // were ready, and ended without a start
  std::vector<std::variant<EndTask, RequeueTask>> events;  // in the order in which they came about
};

class TaskGraph {
 public:
  struct Task {
    std::uint32_t profile = 0;   // tasks with the same number ask for the same
    std::uint32_t blockers = 0;  // tasks and groups it still waits for
    int priority = 0;
    TaskState state = TaskState::kWaiting;
    Nanos expected = -1;  // length alone; < 0: not known
    TaskTries tries;
  };
  // Says why no attempt with this profile can ever run; absent: one can.
  using Impossible = std::function<std::optional<std::string>(const TaskProfile&)>;

  // Tasks come in one batch, or as they are read; what comes `after` a task may be added before it. `more`: further
  // ones will come, so no group in `after_groups` is complete yet.
  [[nodiscard]] TaskChanges add(std::span<const PlannedTask> tasks, bool more, const Impossible& impossible = {});
  void limit_group(GroupIndex group, std::optional<int> max_running);
  // The task must be ready. Returns the attempt's number.
  int start(TaskIndex task);
  // The task must be running. Ends it and skips what comes after it, or has it wait and run again.
  [[nodiscard]] TaskChanges end_attempt(TaskIndex task, const Decision& decision, Nanos now);
  // Ends a task that does not run; a running one is for its executor to stop.
  [[nodiscard]] TaskChanges cancel(TaskIndex task);
  [[nodiscard]] TaskChanges wake(Nanos now);  // retries that are due
  void drain() { draining_ = true; }          // nothing more becomes ready by waiting

  [[nodiscard]] std::size_t size() const { return tasks_.size(); }
  [[nodiscard]] TaskState state(TaskIndex task) const { return tasks_.at(task).state; }
  [[nodiscard]] const Task& task(TaskIndex task) const { return tasks_[task]; }
  [[nodiscard]] const TaskProfile& profile(TaskIndex task) const { return profiles_[tasks_[task].profile]; }
  [[nodiscard]] int running_of_group(GroupIndex group) const;
  [[nodiscard]] std::int64_t unfinished_of_group(GroupIndex group) const;
  [[nodiscard]] bool group_full(GroupIndex group) const;  // as many run as may
  [[nodiscard]] BatchCounts counts() const;
  [[nodiscard]] bool draining() const { return draining_; }
  [[nodiscard]] bool complete() const { return !more_; }  // no further tasks will come
  [[nodiscard]] std::optional<Nanos> next_retry() const;
  // Expected, of tasks that neither run nor ended; no Nanos: there may be a million.
  [[nodiscard]] double queued_seconds() const { return queued_seconds_; }
  [[nodiscard]] bool lengths_known() const { return unknown_lengths_ == 0; }  // of all that have not ended

 private:
  struct Group {
    std::int64_t unfinished = 0;
    bool failed = false;  // a member did not succeed
    bool released = false;
    std::optional<int> max_running;
    int running = 0;
    std::vector<TaskIndex> dependants;
  };

  void add_one(const PlannedTask& given);
  void wait_for(const PlannedTask& given, TaskChanges& changes);
  void make_ready(TaskIndex task, TaskChanges& changes);
  void end_task(TaskIndex task, TaskState state, std::string reason, TaskChanges& changes);
  void settle(TaskIndex task, TaskState state, TaskChanges& changes);
  void release(Group& of, TaskChanges& changes);
  void set_state(TaskIndex task, TaskState state);
  [[nodiscard]] std::uint32_t profile_of(const PlannedTask& given);
  [[nodiscard]] Group& group(GroupIndex index);

  std::vector<Task> tasks_;
  std::vector<TaskProfile> profiles_;
  std::map<std::string, std::uint32_t, std::less<>> profile_index_;
  std::vector<Group> groups_;
  std::unordered_map<TaskIndex, std::vector<TaskIndex>> dependants_;
  std::set<std::pair<Nanos, TaskIndex>> backing_off_;
  std::int64_t by_state_[8] = {};
  std::int64_t ready_for_gpu_ = 0;
  double queued_seconds_ = 0;
  std::int64_t unknown_lengths_ = 0;
  bool more_ = false, draining_ = false;
};

}  // namespace headroom::scheduler
