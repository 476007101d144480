// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/planner.h"

// Builders for the planner's tests: a batch that reads like a story.
namespace headroom::scheduler::testing {

inline constexpr std::int64_t kGib = 1024 * 1024 * 1024;

struct TaskBuilder {
  PlannedTask task;
  TaskBuilder& group(GroupIndex g) { return task.group = g, *this; }
  TaskBuilder& gpus(int n) { return task.resources.gpus = n, *this; }
  TaskBuilder& memory(std::int64_t bytes) { return task.resources.gpu_memory_bytes = bytes, *this; }
  TaskBuilder& cpus(double n) { return task.resources.cpus = n, *this; }
  TaskBuilder& host_memory(std::int64_t bytes) { return task.resources.host_memory_bytes = bytes, *this; }
  TaskBuilder& alone() { return task.resources.alone = true, *this; }
  TaskBuilder& retries(int n) { return task.retry.retries = n, *this; }
  TaskBuilder& timeout(Nanos t) { return task.timeout = t, *this; }
  TaskBuilder& hang_timeout(Nanos t) { return task.hang_timeout = t, *this; }
  TaskBuilder& priority(int p) { return task.priority = p, *this; }
  TaskBuilder& after(std::vector<TaskIndex> tasks) { return task.after = std::move(tasks), *this; }
  TaskBuilder& after_group(GroupIndex g) { return task.after_groups.push_back(g), *this; }
  TaskBuilder& expected(Nanos t) { return task.expected = t, *this; }
  TaskBuilder& already(TaskState s) { return task.state = s, *this; }
};
inline TaskBuilder task() { return {}; }

class Batch {
 public:
  explicit Batch(int gpus = 1, double cores = 16) {
    for (int i = 0; i < gpus; ++i) setup.gpus.push_back({"GPU-" + std::to_string(i), "Model", 80 * kGib});
    setup.host.cores = cores;
    setup.measure_alone = false;  // tests of what limits packing begin with it
  }
  PlannerSetup setup;
  std::vector<GroupLimit> limits;

  Batch& add(int count, const TaskBuilder& like) {
    for (int i = 0; i < count; ++i) {
      tasks_.push_back(like.task);
      tasks_.back().task = static_cast<TaskIndex>(tasks_.size() - 1);
    }
    return *this;
  }
  Batch& begin() {
    planner_.emplace(setup);
    for (const GroupLimit& limit : limits) tell(limit);
    return tell(TasksAdded{std::exchange(tasks_, {})});
  }
  Batch& wait(Nanos time) { return now += time, *this; }
  Batch& tell(const Event& event) {
    actions = planner_->handle(now, event);
    for (const Action& action : actions) note(action);
    return *this;
  }
  Batch& end(TaskIndex task, AttemptOutcome outcome = AttemptOutcome::kSucceeded, std::int64_t peak = 0,
             std::string reason = "") {
    AttemptEnded event{.attempt = running.at(task).attempt, .outcome = outcome, .reason = std::move(reason)};
    if (peak > 0) event.peak_gpu_bytes = peak;
    return tell(event);
  }
  // Every running attempt uses this much, steps and is busy.
  Batch& read(std::int64_t gpu_bytes, double util = 0.3, bool in_startup = false) {
    Readings all;
    for (const auto& [task, start] : running)
      all.attempts.push_back({.attempt = start.attempt,
                              .gpu_bytes = gpu_bytes,
                              .gpu_util_ratio = util,
                              .cores = 0.5,
                              .in_startup = in_startup});
    return tell(all);
  }
  // Lets the first task show what it needs, so that others may join.
  Batch& learn(std::int64_t gpu_bytes, double util = 0.3) {
    for (int second = 0; second < 12; ++second) wait(kSecond).read(gpu_bytes, util);
    return *this;
  }

  [[nodiscard]] Planner& planner() { return *planner_; }
  [[nodiscard]] std::vector<TaskIndex> running_tasks() const {
    std::vector<TaskIndex> tasks;
    for (const auto& [task, start] : running) tasks.push_back(task);
    return tasks;
  }
  [[nodiscard]] std::vector<GpuIndex> gpus_of(TaskIndex task) const { return running.at(task).gpus; }
  template <class T>
  [[nodiscard]] std::vector<T> all() const {
    std::vector<T> found;
    for (const Action& action : actions)
      if (const T* one = std::get_if<T>(&action)) found.push_back(*one);
    return found;
  }

  Nanos now = 0;
  std::vector<Action> actions;  // of the last event
  std::map<TaskIndex, StartAttempt> running;
  std::map<TaskIndex, EndTask> ended;
  std::vector<TaskIndex> started;  // in order, each attempt

 private:
  void note(const Action& action) {
    if (const auto* start = std::get_if<StartAttempt>(&action)) {
      running[start->task] = *start;
      started.push_back(start->task);
    }
    if (const auto* close = std::get_if<CloseAttempt>(&action)) running.erase(close->task);
    if (const auto* end = std::get_if<EndTask>(&action)) ended[end->task] = *end;
  }
  std::vector<PlannedTask> tasks_;
  std::optional<Planner> planner_;
};

}  // namespace headroom::scheduler::testing
