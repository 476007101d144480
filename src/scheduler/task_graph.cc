// SPDX-License-Identifier: Apache-2.0
#include "scheduler/task_graph.h"

#include <algorithm>

#include "base/result.h"

namespace headroom::scheduler {

namespace {

bool is_queued(TaskState state) {
  return state == TaskState::kWaiting || state == TaskState::kReady || state == TaskState::kBackingOff;
}

template <class T>
std::string text(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "-";
}

}  // namespace

TaskGraph::Group& TaskGraph::group(GroupIndex index) {
  const auto at = static_cast<std::size_t>(index);
  if (at >= groups_.size()) groups_.resize(at + 1);
  return groups_[at];
}

std::uint32_t TaskGraph::profile_of(const PlannedTask& given) {
  const ResourceRequest& need = given.resources;
  const RetryPolicy& retry = given.retry;
  const auto same = [&](const TaskProfile& p) {
    return p.group == given.group && p.resources == need && p.retry == retry && p.timeout == given.timeout &&
           p.hang_timeout == given.hang_timeout;
  };
  if (!profiles_.empty() && same(profiles_.back())) return static_cast<std::uint32_t>(profiles_.size() - 1);
  const std::string key =
      fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}", given.group, need.gpus, text(need.gpu_memory_bytes),
                  text(need.cpus), text(need.host_memory_bytes), need.alone, retry.retries, retry.backoff,
                  retry.backoff_factor, retry.backoff_max, text(given.timeout), text(given.hang_timeout));
  const auto [found, fresh] = profile_index_.emplace(key, static_cast<std::uint32_t>(profiles_.size()));
  if (fresh) profiles_.push_back({given.group, need, retry, given.timeout, given.hang_timeout});
  return found->second;
}

void TaskGraph::set_state(TaskIndex task, TaskState state) {
  Task& t = tasks_[task];
  const int queued = (is_queued(state) ? 1 : 0) - (is_queued(t.state) ? 1 : 0);
  if (t.expected >= 0) queued_seconds_ += queued * seconds(t.expected);
  if (t.expected < 0 && has_ended(state) && !has_ended(t.state)) --unknown_lengths_;
  --by_state_[static_cast<std::size_t>(t.state)];
  ++by_state_[static_cast<std::size_t>(state)];
  if (profile(task).resources.gpus > 0)
    ready_for_gpu_ += (state == TaskState::kReady ? 1 : 0) - (t.state == TaskState::kReady ? 1 : 0);
  t.state = state;
}

TaskChanges TaskGraph::add(std::span<const PlannedTask> given, bool more, const Impossible& impossible) {
  TaskChanges changes;
  more_ = more;
  const std::size_t first = tasks_.size();
  tasks_.reserve(first + given.size());
  for (const PlannedTask& task : given) add_one(task);
  for (const PlannedTask& task : given) wait_for(task, changes);
  for (const PlannedTask& task : given)
    if (has_ended(task.state)) settle(task.task, task.state, changes);
  for (const PlannedTask& task : given) {
    const Task& t = tasks_[task.task];
    if (has_ended(t.state)) continue;
    if (auto reason = impossible ? impossible(profiles_[t.profile]) : std::nullopt)
      end_task(task.task, TaskState::kFailed, std::move(*reason), changes);
    else if (t.state == TaskState::kWaiting && t.blockers == 0)
      make_ready(task.task, changes);
  }
  for (Group& of : groups_) release(of, changes);
  return changes;
}

void TaskGraph::add_one(const PlannedTask& given) {
  HR_CHECK(given.task == tasks_.size(), "tasks are added in order, without gaps");
  Task task;
  task.profile = profile_of(given);
  task.priority = given.priority;
  task.expected = given.expected.value_or(-1);
  task.tries.attempts = given.attempts_before;
  task.tries.failures = given.failures_before;
  tasks_.push_back(task);
  ++by_state_[static_cast<std::size_t>(TaskState::kWaiting)];
  if (task.expected >= 0)
    queued_seconds_ += seconds(task.expected);
  else
    ++unknown_lengths_;
  ++group(given.group).unfinished;
}

void TaskGraph::wait_for(const PlannedTask& given, TaskChanges& changes) {
  Task& task = tasks_[given.task];
  for (const TaskIndex other : given.after) {
    if (other < tasks_.size() && tasks_[other].state == TaskState::kSucceeded) continue;
    dependants_[other].push_back(given.task);
    ++task.blockers;
  }
  for (const GroupIndex other : given.after_groups) {
    Group& before = group(other);
    if (before.released) continue;
    before.dependants.push_back(given.task);
    ++task.blockers;
  }
  // What it comes after may have failed before this task was read.
  const bool lost =
      std::any_of(given.after.begin(), given.after.end(),
                  [&](TaskIndex i) { return i < tasks_.size() && tasks_[i].state > TaskState::kSucceeded; }) ||
      std::any_of(given.after_groups.begin(), given.after_groups.end(), [&](GroupIndex g) { return group(g).failed; });
  if (lost && !has_ended(given.state))
    end_task(given.task, TaskState::kSkipped, "a task it comes after did not succeed", changes);
}

void TaskGraph::limit_group(GroupIndex index, std::optional<int> max_running) {
  group(index).max_running = max_running;
}

int TaskGraph::start(TaskIndex task) {
  set_state(task, TaskState::kRunning);
  ++group(profile(task).group).running;
  return ++tasks_[task].tries.attempts;
}

TaskChanges TaskGraph::end_attempt(TaskIndex index, const Decision& decision, Nanos now) {
  TaskChanges changes;
  Task& task = tasks_[index];
  --group(profile(index).group).running;
  task.tries = decision.tries;
  if (decision.end) {
    end_task(index, *decision.end, decision.reason, changes);
    return changes;
  }
  const Nanos at = now + decision.wait;
  changes.events.emplace_back(RequeueTask{index, decision.outcome, at, task.tries.gpu_bytes, task.tries.alone});
  if (at <= now) {
    make_ready(index, changes);
  } else {
    set_state(index, TaskState::kBackingOff);
    backing_off_.emplace(at, index);
  }
  return changes;
}

void TaskGraph::make_ready(TaskIndex task, TaskChanges& changes) {
  set_state(task, TaskState::kReady);
  changes.ready.push_back(task);
}

void TaskGraph::end_task(TaskIndex task, TaskState state, std::string reason, TaskChanges& changes) {
  changes.events.emplace_back(EndTask{task, state, std::move(reason)});
  settle(task, state, changes);
}

// Ends the task and skips, in turn, all that come after it if it did not succeed.
void TaskGraph::settle(TaskIndex first, TaskState first_state, TaskChanges& changes) {
  std::vector<std::pair<TaskIndex, TaskState>> work{{first, first_state}};
  while (!work.empty()) {
    const auto [task, state] = work.back();
    work.pop_back();
    if (has_ended(tasks_[task].state)) continue;
    if (tasks_[task].state == TaskState::kReady) changes.withdrawn.push_back(task);
    set_state(task, state);
    if (task != first) changes.events.emplace_back(EndTask{task, state, "a task it comes after did not succeed"});
    const bool good = state == TaskState::kSucceeded;
    Group& of = group(profile(task).group);
    --of.unfinished;
    const auto skip_or_release = [&](TaskIndex other) {
      if (has_ended(tasks_[other].state)) return;
      if (!good)
        work.emplace_back(other, TaskState::kSkipped);
      else if (--tasks_[other].blockers == 0 && tasks_[other].state == TaskState::kWaiting)
        make_ready(other, changes);
    };
    if (const auto found = dependants_.find(task); found != dependants_.end()) {
      const std::vector<TaskIndex> list = std::move(found->second);
      dependants_.erase(found);
      std::for_each(list.begin(), list.end(), skip_or_release);
    }
    if (good) {
      release(of, changes);
    } else if (!of.failed) {
      of.failed = true;
      for (const TaskIndex other : std::exchange(of.dependants, {})) skip_or_release(other);
    }
  }
}

// Tasks that come after a whole group start when it is complete and all of it succeeded.
void TaskGraph::release(Group& of, TaskChanges& changes) {
  if (more_ || of.released || of.failed || of.unfinished > 0) return;
  of.released = true;
  for (const TaskIndex other : std::exchange(of.dependants, {}))
    if (!has_ended(tasks_[other].state) && --tasks_[other].blockers == 0) make_ready(other, changes);
}

TaskChanges TaskGraph::cancel(TaskIndex task) {
  TaskChanges changes;
  if (task >= tasks_.size() || has_ended(tasks_[task].state) || tasks_[task].state == TaskState::kRunning)
    return changes;
  if (tasks_[task].state == TaskState::kBackingOff)
    std::erase_if(backing_off_, [&](const auto& due) { return due.second == task; });
  end_task(task, TaskState::kCancelled, "cancelled", changes);
  return changes;
}

TaskChanges TaskGraph::wake(Nanos now) {
  TaskChanges changes;
  while (!draining_ && !backing_off_.empty() && backing_off_.begin()->first <= now) {
    const TaskIndex task = backing_off_.begin()->second;
    backing_off_.erase(backing_off_.begin());
    make_ready(task, changes);
  }
  return changes;
}

int TaskGraph::running_of_group(GroupIndex index) const {
  const auto at = static_cast<std::size_t>(index);
  return at < groups_.size() ? groups_[at].running : 0;
}

std::int64_t TaskGraph::unfinished_of_group(GroupIndex index) const {
  const auto at = static_cast<std::size_t>(index);
  return at < groups_.size() ? groups_[at].unfinished : 0;
}

bool TaskGraph::group_full(GroupIndex index) const {
  const auto at = static_cast<std::size_t>(index);
  return at < groups_.size() && groups_[at].max_running && groups_[at].running >= *groups_[at].max_running;
}

BatchCounts TaskGraph::counts() const {
  const auto of = [&](TaskState state) { return by_state_[static_cast<std::size_t>(state)]; };
  return {.total = static_cast<std::int64_t>(tasks_.size()),
          .waiting = of(TaskState::kWaiting),
          .ready = of(TaskState::kReady),
          .running = of(TaskState::kRunning),
          .backing_off = of(TaskState::kBackingOff),
          .succeeded = of(TaskState::kSucceeded),
          .failed = of(TaskState::kFailed),
          .skipped = of(TaskState::kSkipped),
          .cancelled = of(TaskState::kCancelled),
          .ready_for_gpu = ready_for_gpu_};
}

std::optional<Nanos> TaskGraph::next_retry() const {
  if (draining_ || backing_off_.empty()) return std::nullopt;
  return backing_off_.begin()->first;
}

}  // namespace headroom::scheduler
