// SPDX-License-Identifier: Apache-2.0
#include "scheduler/planner.h"

#include <algorithm>

#include "base/human.h"
#include "base/result.h"
#include "scheduler/planner_state.h"

namespace headroom::scheduler {

Planner::State::State(PlannerSetup given) : setup(std::move(given)), next_attempt(setup.first_attempt) {
  for (const GpuFacts& facts : setup.gpus)
    gpus.push_back({.facts = facts, .packer = Packer(setup.decide_every, setup.space_sharing)});
  for (const GroupHistory& past : setup.history) {
    GroupStats& stats = group(past.group).stats[past.gpu_model];
    const auto in_seconds = [](std::optional<Nanos> ns) { return ns ? std::optional(seconds(*ns)) : std::nullopt; };
    stats.recall(past.finished, past.peak_gpu_bytes);
    stats.recall_speed(past.gpu_util_ratio, past.cores, in_seconds(past.startup), in_seconds(past.duration),
                       past.seconds_per_step);
  }
}

Planner::Planner(PlannerSetup setup) : state_(std::make_unique<State>(std::move(setup))) {}
Planner::~Planner() = default;
Planner::Planner(Planner&&) noexcept = default;
Planner& Planner::operator=(Planner&&) noexcept = default;

std::vector<Action> Planner::handle(Nanos now, const Event& event) {
  state_->now = std::max(state_->now, now);
  state_->actions.clear();
  state_->outlook_.reset();
  std::visit([this](const auto& e) { state_->on(e); }, event);
  state_->wake();
  state_->place();
  return std::move(state_->actions);
}

std::optional<Nanos> Planner::next_wake() const {
  const State& s = *state_;
  std::optional<Nanos> at;
  const auto sooner = [&](Nanos due) { at = std::min(at.value_or(due), due); };
  if (!s.draining && !s.backing_off.empty()) sooner(s.backing_off.begin()->first);
  for (const auto& [id, attempt] : s.running) {
    if (attempt.stopping) continue;
    const Profile& profile = s.profile(s.tasks[attempt.task]);
    if (profile.timeout) sooner(attempt.start + *profile.timeout);
  }
  if (s.draining || s.queue.empty()) return at;
  for (const Gpu& gpu : s.gpus) {
    if (const auto held = gpu.packer.held_until(s.now)) sooner(*held);
    if (gpu.tenant_seen && !gpu.others_compute && *gpu.tenant_seen + s.setup.tenant_memory > s.now)
      sooner(*gpu.tenant_seen + s.setup.tenant_memory);
  }
  return at;
}

bool Planner::finished() const {
  const State& s = *state_;
  if (!s.running.empty()) return false;
  if (s.draining) return true;
  if (s.more_tasks || !s.backing_off.empty()) return false;
  if (s.queue.empty()) return true;
  if (s.usable_gpus() == s.gpus.size()) return false;
  // Ready tasks, and GPUs lost: is there one that could still run?
  for (const auto& [key, bucket] : s.queue.heads()) {
    const TaskRecord& task = s.tasks[key.task];
    if (static_cast<std::size_t>(s.profile(task).resources.gpus) <= s.usable_gpus()) return false;
  }
  return true;
}

TaskState Planner::state(TaskIndex task) const { return state_->tasks.at(task).state; }

BatchCounts Planner::counts() const {
  const auto of = [&](TaskState state) { return state_->by_state[static_cast<std::size_t>(state)]; };
  return {.total = static_cast<std::int64_t>(state_->tasks.size()),
          .waiting = of(TaskState::kWaiting),
          .ready = of(TaskState::kReady),
          .running = of(TaskState::kRunning),
          .backing_off = of(TaskState::kBackingOff),
          .succeeded = of(TaskState::kSucceeded),
          .failed = of(TaskState::kFailed),
          .skipped = of(TaskState::kSkipped),
          .cancelled = of(TaskState::kCancelled),
          .ready_for_gpu = state_->ready_for_gpu};
}

GpuView Planner::gpu(GpuIndex index) const {
  const Gpu& gpu = state_->gpus.at(static_cast<std::size_t>(index));
  GpuView view;
  view.usable = gpu.usable;
  view.running = gpu.running;
  view.counted_bytes = state_->counted(gpu);
  view.limit_bytes = state_->limit(gpu);
  const std::vector<double> loads = state_->loads(gpu);
  for (const double load : loads) view.load += load;
  view.parallelism = gpu.packer.parallelism();
  view.predicted_rate = work_rate(loads, view.parallelism);
  view.max_load = gpu.packer.max_load(state_->now);
  view.direction_changes = gpu.packer.direction_changes();
  return view;
}

double Planner::cores_counted() const { return state_->cores_counted(); }

std::string Planner::why_waiting() const {
  State& s = *state_;
  if (s.queue.empty()) return "";
  if (s.draining) return "the batch is ending: nothing more is started";
  const TaskRecord& task = s.tasks[s.queue.heads().begin()->first.task];
  const Profile& profile = s.profile(task);
  const Group& group = s.groups[static_cast<std::size_t>(profile.group)];
  if (group.max_running && group.running >= *group.max_running)
    return fmt::format("{} of its group run, and the group may have no more", group.running);
  if (profile.resources.gpus == 0) return fmt::format("all {} slots are taken", s.slots());
  if (static_cast<std::size_t>(profile.resources.gpus) > s.usable_gpus())
    return fmt::format("it needs {} GPUs, and {} of {} can be used", profile.resources.gpus, s.usable_gpus(),
                       s.gpus.size());
  if (s.wants_whole(task)) return "it needs GPUs of its own, and waits for them to empty";
  if (!s.host_fits(task, true)) return "the host's cores or memory are taken";
  for (std::size_t i = 0; i < s.gpus.size(); ++i)
    if (s.gpus[i].usable && s.memory_fits(s.gpus[i], s.need_of(task, static_cast<GpuIndex>(i))))
      return "one more task on a GPU would not raise its measured rate of work";
  return "no GPU has enough free memory for it";
}

std::vector<AloneRate> Planner::alone_rates() const {
  std::map<std::string, AloneRate> by_model;
  for (const Group& group : state_->groups) {
    for (const auto& [model, stats] : group.stats) {
      const std::int64_t finished = stats.tasks_finished_here();
      if (model.empty() || finished == 0) continue;
      AloneRate& rate = by_model[model];
      rate.gpu_model = model;
      const bool measured = stats.alone_attempts() > 0 || stats.recalled();
      rate.untold_tasks += finished - (measured ? stats.tasks_told() : 0);
      if (!measured) continue;
      rate.tasks += stats.tasks_told();
      rate.alone_seconds += stats.told_seconds();
      rate.alone_attempts += stats.alone_attempts();
      rate.from_history = rate.from_history || stats.alone_attempts() == 0;
    }
  }
  std::vector<AloneRate> all;
  for (auto& [model, rate] : by_model) all.push_back(std::move(rate));
  return all;
}

std::vector<GroupHistory> Planner::learned() const {
  std::vector<GroupHistory> all;
  const auto nanos = [](std::optional<double> s) {
    return s ? std::optional(static_cast<Nanos>(*s * 1e9)) : std::nullopt;
  };
  for (std::size_t i = 0; i < state_->groups.size(); ++i) {
    for (const auto& [model, stats] : state_->groups[i].stats) {
      GroupHistory past{.group = static_cast<GroupIndex>(i), .gpu_model = model};
      past.finished = stats.tasks_finished();
      if (stats.peak_bytes() > 0) past.peak_gpu_bytes = stats.peak_bytes();
      if (stats.util_known()) past.gpu_util_ratio = stats.util();
      if (stats.cores_known()) past.cores = stats.cores();
      past.startup = nanos(stats.startup_seconds());
      past.duration = nanos(stats.alone_duration_seconds());
      past.seconds_per_step = stats.seconds_per_step();
      all.push_back(std::move(past));
    }
  }
  return all;
}

}  // namespace headroom::scheduler
