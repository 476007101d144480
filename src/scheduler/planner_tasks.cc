// SPDX-License-Identifier: Apache-2.0
// The planner's tasks: what they wait for, the queue, and their ends.
#include <algorithm>

#include "base/human.h"
#include "base/result.h"
#include "scheduler/planner_state.h"

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

Group& Planner::State::group(GroupIndex index) {
  const auto at = static_cast<std::size_t>(index);
  if (at >= groups.size()) groups.resize(at + 1);
  return groups[at];
}

std::uint32_t Planner::State::profile_of(const PlannedTask& given) {
  const ResourceRequest& need = given.resources;
  const RetryPolicy& retry = given.retry;
  const auto same = [&](const Profile& p) {
    return p.group == given.group && p.resources == need && p.retry == retry && p.timeout == given.timeout &&
           p.hang_timeout == given.hang_timeout;
  };
  if (!profiles.empty() && same(profiles.back())) return static_cast<std::uint32_t>(profiles.size() - 1);
  const std::string key =
      fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}", given.group, need.gpus, text(need.gpu_memory_bytes),
                  text(need.cpus), text(need.host_memory_bytes), need.alone, retry.retries, retry.backoff,
                  retry.backoff_factor, retry.backoff_max, text(given.timeout), text(given.hang_timeout));
  const auto [found, fresh] = profile_index.emplace(key, static_cast<std::uint32_t>(profiles.size()));
  if (fresh) profiles.push_back({given.group, need, retry, given.timeout, given.hang_timeout});
  return found->second;
}

ReadyQueue::Bucket Planner::State::bucket_of(const TaskRecord& task) {
  // Retries and timeouts do not matter for a place, but tasks that differ in them are rarely many kinds.
  const std::string key = fmt::format("{} {} {} {}", task.profile, task.alone, task.reserve, task.host_reserve);
  const auto [found, fresh] = bucket_index.emplace(key, static_cast<ReadyQueue::Bucket>(bucket_index.size()));
  if (fresh) overtaken.push_back(0);
  return found->second;
}

QueueKey Planner::State::key_of(TaskIndex task) const {
  QueueKey key{.minus_priority = -tasks[task].priority, .task = task};
  if (tasks[task].expected >= 0) key.minus_expected = -tasks[task].expected;
  return key;
}

void Planner::State::set_state(TaskIndex task, TaskState state) {
  TaskRecord& t = tasks[task];
  const int queued = (is_queued(state) ? 1 : 0) - (is_queued(t.state) ? 1 : 0);
  if (t.expected >= 0) queued_seconds += queued * seconds(t.expected);
  if (t.expected < 0 && has_ended(state) && !has_ended(t.state)) --unknown_lengths;
  --by_state[static_cast<std::size_t>(t.state)];
  ++by_state[static_cast<std::size_t>(state)];
  if (profile(t).resources.gpus > 0)
    ready_for_gpu += (state == TaskState::kReady ? 1 : 0) - (t.state == TaskState::kReady ? 1 : 0);
  t.state = state;
}

std::optional<std::string> Planner::State::impossible(const Profile& profile) const {
  const ResourceRequest& need = profile.resources;
  if (need.gpus > static_cast<int>(gpus.size()))
    return fmt::format("it asks for {} GPUs, and this batch has {}", need.gpus, gpus.size());
  if (need.cpus && *need.cpus > setup.host.cores)
    return fmt::format("it asks for {} cores, and {} can be used here", *need.cpus, setup.host.cores);
  if (need.host_memory_bytes && setup.host.memory_bytes > 0 && *need.host_memory_bytes > setup.host.memory_bytes)
    return fmt::format("it asks for {} of host memory, and {} can be used here", human_bytes(*need.host_memory_bytes),
                       human_bytes(setup.host.memory_bytes));
  if (need.gpus == 0 || !need.gpu_memory_bytes) return std::nullopt;
  std::int64_t largest = 0;
  int enough = 0;
  for (const Gpu& gpu : gpus) {
    largest = std::max(largest, gpu.facts.memory_bytes);
    if (gpu.facts.memory_bytes >= *need.gpu_memory_bytes) ++enough;
  }
  if (enough >= need.gpus) return std::nullopt;
  return fmt::format("it asks for {} of GPU memory, and the largest GPU has {}", human_bytes(*need.gpu_memory_bytes),
                     human_bytes(largest));
}

void Planner::State::on(const TasksAdded& event) {
  more_tasks = event.more;
  tasks.reserve(tasks.size() + event.tasks.size());
  const std::size_t first = tasks.size();
  for (const PlannedTask& given : event.tasks) add(given);
  for (const PlannedTask& given : event.tasks) wait_for(given);
  for (std::size_t i = first; i < tasks.size(); ++i) {
    const auto task = static_cast<TaskIndex>(i);
    if (has_ended(event.tasks[i - first].state)) settle(task, event.tasks[i - first].state);
  }
  for (std::size_t i = first; i < tasks.size(); ++i) {
    const TaskRecord& t = tasks[i];
    if (has_ended(t.state)) continue;
    if (auto reason = impossible(profiles[t.profile]))
      end_task(static_cast<TaskIndex>(i), TaskState::kFailed, std::move(*reason));
    else if (t.state == TaskState::kWaiting && t.blockers == 0)
      make_ready(static_cast<TaskIndex>(i));
  }
  for (Group& of : groups) release(of);
}

void Planner::State::add(const PlannedTask& given) {
  HR_CHECK(given.task == tasks.size(), "tasks are added in order, without gaps");
  TaskRecord task;
  task.profile = profile_of(given);
  task.priority = given.priority;
  task.expected = given.expected.value_or(-1);
  task.attempts = given.attempts_before;
  task.failures = given.failures_before;
  tasks.push_back(task);
  ++by_state[static_cast<std::size_t>(TaskState::kWaiting)];
  if (task.expected >= 0)
    queued_seconds += seconds(task.expected);
  else
    ++unknown_lengths;
  Group& of = group(given.group);
  ++of.members;
  ++of.unfinished;
}

void Planner::State::wait_for(const PlannedTask& given) {
  TaskRecord& task = tasks[given.task];
  for (const TaskIndex other : given.after) {
    if (other < tasks.size() && tasks[other].state == TaskState::kSucceeded) continue;
    dependants[other].push_back(given.task);
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
                  [&](TaskIndex i) { return i < tasks.size() && tasks[i].state > TaskState::kSucceeded; }) ||
      std::any_of(given.after_groups.begin(), given.after_groups.end(), [&](GroupIndex g) { return group(g).failed; });
  if (lost && !has_ended(given.state))
    end_task(given.task, TaskState::kSkipped, "a task it comes after did not succeed");
}

void Planner::State::on(const GroupLimit& event) { group(event.group).max_running = event.max_running; }

void Planner::State::make_ready(TaskIndex task) {
  set_state(task, TaskState::kReady);
  tasks[task].bucket = bucket_of(tasks[task]);
  queue.push(tasks[task].bucket, key_of(task));
}

void Planner::State::unqueue(TaskIndex task) {
  queue.erase(tasks[task].bucket, key_of(task));
  if (claim_ && claim_->task == task) claim_.reset();
}

void Planner::State::end_task(TaskIndex task, TaskState state, std::string reason) {
  act(EndTask{task, state, std::move(reason)});
  settle(task, state);
}

// Ends the task and skips, in turn, all that come after it if it did not succeed.
void Planner::State::settle(TaskIndex first, TaskState first_state) {
  std::vector<std::pair<TaskIndex, TaskState>> work{{first, first_state}};
  while (!work.empty()) {
    const auto [task, state] = work.back();
    work.pop_back();
    if (has_ended(tasks[task].state)) continue;
    if (tasks[task].state == TaskState::kReady) unqueue(task);
    set_state(task, state);
    if (task != first) act(EndTask{task, state, "a task it comes after did not succeed"});
    const bool good = state == TaskState::kSucceeded;
    Group& of = groups[static_cast<std::size_t>(profile(tasks[task]).group)];
    --of.unfinished;
    const auto skip_or_release = [&](TaskIndex other) {
      if (has_ended(tasks[other].state)) return;
      if (!good)
        work.emplace_back(other, TaskState::kSkipped);
      else if (--tasks[other].blockers == 0 && tasks[other].state == TaskState::kWaiting)
        make_ready(other);
    };
    if (const auto found = dependants.find(task); found != dependants.end()) {
      const std::vector<TaskIndex> list = std::move(found->second);
      dependants.erase(found);
      std::for_each(list.begin(), list.end(), skip_or_release);
    }
    if (good) {
      release(of);
    } else if (!of.failed) {
      of.failed = true;
      for (const TaskIndex other : std::exchange(of.dependants, {})) skip_or_release(other);
    }
  }
}

// Tasks that come after a whole group start when it is complete and all of it succeeded.
void Planner::State::release(Group& of) {
  if (more_tasks || of.released || of.failed || of.unfinished > 0) return;
  of.released = true;
  for (const TaskIndex other : std::exchange(of.dependants, {}))
    if (!has_ended(tasks[other].state) && --tasks[other].blockers == 0) make_ready(other);
}

void Planner::State::on(const CancelTask& event) {
  if (event.task >= tasks.size() || has_ended(tasks[event.task].state)) return;
  if (tasks[event.task].state != TaskState::kRunning) {
    if (tasks[event.task].state == TaskState::kBackingOff)
      std::erase_if(backing_off, [&](const auto& due) { return due.second == event.task; });
    end_task(event.task, TaskState::kCancelled, "cancelled");
    return;
  }
  for (auto& [id, attempt] : running)
    if (attempt.task == event.task) stop(attempt, StopReason::kCancelled);
}

}  // namespace headroom::scheduler
