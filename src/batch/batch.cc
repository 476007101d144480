// SPDX-License-Identifier: Apache-2.0
#include "batch/batch.h"

#include <algorithm>
#include <csignal>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>

#include "base/strings.h"
#include "batch/add_tasks.h"
#include "batch/choose_tasks.h"
#include "batch/events.h"
#include "batch/read_tasks.h"
#include "batch/resume.h"

// What comes from outside: time, signals, snapshots, questions. What attempts do is in batch_attempts.cc.
namespace headroom::batch {

namespace {

constexpr Nanos kLookLost = 3 * kSecond;  // without a look at the GPUs for so long, none will come

constexpr int kSetAsideAfter = 3;  // runs of the batch that died while a task was under way

scheduler::PlannerSetup setup_with(const BatchOptions& options, AttemptId first) {
  scheduler::PlannerSetup setup = options.planner;
  for (const BatchGpu& gpu : options.gpus)
    setup.gpus.push_back({.uuid = gpu.uuid, .model = gpu.model, .memory_bytes = gpu.memory_bytes});
  setup.first_attempt = first;
  return setup;
}

std::vector<TaskKey> keys_of(const std::vector<KnownTask>& known) {
  std::vector<TaskKey> keys;
  for (const KnownTask& task : known) keys.push_back(task.key);
  return keys;
}

// With what earlier runs did: what has succeeded counts for the tasks after it, and never runs.
scheduler::TasksAdded with_known(std::vector<scheduler::PlannedTask> tasks, const std::vector<KnownTask>& known) {
  for (scheduler::PlannedTask& task : tasks) {
    const KnownTask& before = known[task.task];
    task.attempts_before = before.attempts;
    if (before.state == TaskState::kSucceeded) task.state = TaskState::kSucceeded;
    if (!has_ended(before.state)) task.failures_before = before.failures;
    // Whatever it does to the batch, the others come first.
    if (before.deaths >= kSetAsideAfter) task.priority = -std::numeric_limits<int>::max();
  }
  return {.tasks = std::move(tasks)};
}

}  // namespace

Batch::Batch(BatchOptions options, scheduler::TaskPlan plan, const std::vector<KnownTask>& known, Parts parts)
    : options_(std::move(options)),
      parts_(std::move(parts)),
      planner_(setup_with(options_, parts_.journal.next_attempt())),
      tasks_(with_known(std::move(plan.tasks), known)),
      eta_(tasks_.tasks),
      messages_(parts_.say, options_.tasks),
      book_(parts_.journal, keys_of(known)),
      starts_({.book = book_,
               .journal = parts_.journal,
               .executor = parts_.executor,
               .messages = messages_,
               .clock = parts_.clock,
               .folder = options_.folder}),
      watch_(options_.gpus, options_.gpu_processes_visible, parts_.executor, book_),
      statistics_(options_.gpus) {
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (known[i].in_flight) statistics_.ran_when_headroom_died(options_.tasks[i].name);
    if (known[i].deaths >= kSetAsideAfter && !has_ended(known[i].state))
      messages_.problem(words::set_aside(options_.tasks[i].name, known[i].deaths));
  }
  for (const GroupSpec& limit : options_.group_limits)
    for (std::size_t i = 0; i < plan.groups.size(); ++i)
      if (plan.groups[i] == limit.name)
        limits_.push_back({.group = static_cast<scheduler::GroupIndex>(i), .max_running = limit.max_running});
}

void Batch::begin() {
  times_.begin = parts_.clock.boottime();
  times_.second = times_.begin + kSecond;
  for (const scheduler::GroupLimit& limit : limits_) feed(limit);
  feed(std::exchange(tasks_, {}));
  settle();
}

void Batch::wake() {
  const Nanos now = parts_.clock.boottime();
  if (now >= times_.second) {
    times_.second = now + kSecond;
    if (watch_.wants_process_lists(now)) parts_.recorder.read_process_lists();
    conclude_unsettled(now - kLookLost);
    const std::string damage = parts_.journal.damage();
    if (!damage.empty() && damage != std::exchange(told_.damage, damage)) messages_.problem(damage);
  }
  if (const auto due = planner_.next_wake(); due && now >= *due) feed(scheduler::Tick{});
  settle();
}

std::optional<Nanos> Batch::next_wake() const {
  if (ending_.done) return std::nullopt;
  Nanos next = times_.second;
  if (const auto due = planner_.next_wake())
    next = std::min(next, std::max(*due, parts_.clock.boottime() + kMillisecond));
  if (const auto due = starts_.due()) next = std::min(next, *due);
  return next;
}

void Batch::look(const Snapshot& now) {
  if (ending_.done) return;
  for (std::size_t i = 0; i < options_.gpus.size(); ++i) {
    const auto index = static_cast<scheduler::GpuIndex>(i);
    const auto named = [&](const std::string& uuid) { return uuid == options_.gpus[i].uuid; };
    if (std::any_of(now.lost.begin(), now.lost.end(), named))
      feed(scheduler::GpuLost{.gpu = index, .reason = "the driver has lost it"});
    if (std::any_of(now.back.begin(), now.back.end(), named)) feed(scheduler::GpuBack{.gpu = index});
  }
  conclude_unsettled(now.at);
  eta_.observe(now.at, how_far(now.at), planner_.prices());
  PlacementWatch::Look look = watch_.look(now);
  // For the next look: a short task holds memory for a part of a second, and one look in each would rarely meet it.
  if (watch_.wants_process_lists(now.at)) parts_.recorder.read_process_lists();
  if (options_.count_steps) {
    for (scheduler::AttemptReading& reading : look.readings.attempts) {
      BookedAttempt& attempt = *book_.find(reading.attempt);
      if (!options_.steps_only_kept) reading.steps = attempt.seen.steps;
      read_steps(attempt);
    }
  }
  feed(look.readings);
  for (const PlacementWatch::Misplaced& one : look.misplaced) is_misplaced(one);
  for (const AttemptId id : look.not_on_gpu)
    if (const BookedAttempt* attempt = book_.find(id))
      messages_.problem(words::not_on_gpu(spec(attempt->facts.task).name, now.at - attempt->start));
  settle();
}

void Batch::is_misplaced(const PlacementWatch::Misplaced& seen) {
  BookedAttempt& attempt = *book_.find(seen.attempt);
  messages_.problem(words::misplaced(spec(attempt.facts.task).name, gpu_name(seen.uuid),
                                     gpu_name(attempt.facts.gpu_uuids.front()), seen.pid));
  if (!options_.stop_misplaced) return;
  attempt.evidence.stopped_as_misplaced = true;
  parts_.executor.stop(seen.attempt, StopHow::kGently);
}

void Batch::interrupt(int signal) {
  const bool ends = signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
  if (!ends) return;
  ending_.signal = signal;
  if (signal == SIGINT && !ending_.draining) {
    drain();
  } else if (!ending_.stopping) {
    ending_.stopping = ending_.draining = true;
    messages_.fact(words::stopping(running()));
    feed(scheduler::Stop{});
  } else {
    messages_.fact("killing what still runs");
    for (const Stage stage : {Stage::kStarting, Stage::kRunning})
      for (const BookedAttempt* attempt : book_.all(stage)) parts_.executor.stop(attempt->facts.id, StopHow::kAtOnce);
  }
  settle();
}

void Batch::drain() {
  if (std::exchange(ending_.draining, true)) return;
  messages_.fact(words::draining(running()));
  feed(scheduler::Drain{});
}

Result<std::vector<std::string>> Batch::cancel(const std::vector<std::string>& patterns) {
  HR_TRY(const std::vector<TaskIndex> tasks, tasks_named(options_.tasks, patterns));
  std::vector<std::string> cancelled;
  for (const TaskIndex task : tasks) {
    if (has_ended(planner_.state(task))) continue;
    cancelled.push_back(spec(task).name);
    feed(scheduler::CancelTask{.task = task});
  }
  if (cancelled.empty())
    return fail(Errc::kInvalidInput, tasks.size() == 1
                                         ? fmt::format("task '{}' has ended: {}", spec(tasks.front()).name,
                                                       name(planner_.state(tasks.front())))
                                         : fmt::format("all {} tasks of this name have ended", tasks.size()));
  settle();
  return cancelled;
}

Result<Batch::Addition> Batch::plan_addition(const std::vector<TaskSpec>& given) const {
  if (ending_.draining || ending_.done)
    return fail(Errc::kBusy, "the batch is ending: nothing more is started", "give the tasks as a batch of their own");
  std::unordered_map<std::string_view, std::string_view> identities;  // by name
  for (const TaskSpec& task : options_.tasks) identities.emplace(task.name, task.identity);
  Addition addition;
  for (const TaskSpec& task : given) {
    const auto same = identities.find(task.name);
    if (same == identities.end())
      addition.tasks.push_back(task);
    else if (same->second != task.identity)
      return fail(Errc::kInvalidInput, fmt::format("the batch has a task '{}', with another command", task.name),
                  "give it another name");
  }
  name_parameters(options_.tasks, addition.tasks);
  if (options_.pin == PinBy::kNothing) HR_TRYV(leave_gpus_alone(addition.tasks, "the batch has none"));
  std::vector<TaskSpec> all = options_.tasks;
  all.insert(all.end(), addition.tasks.begin(), addition.tasks.end());
  HR_TRY(addition.plan, scheduler::plan_tasks(all));
  for (std::size_t i = options_.tasks.size(); i < all.size(); ++i)
    for (const TaskIndex before : addition.plan.tasks[i].after)
      if (before < options_.tasks.size() && has_ended(planner_.state(before)) &&
          planner_.state(before) != TaskState::kSucceeded)
        return fail(Errc::kInvalidInput,
                    fmt::format("task '{}' comes after '{}', which did not succeed", all[i].name, all[before].name));
  return addition;
}

void Batch::add(Addition addition, const std::vector<KnownTask>& known) {
  const std::size_t first = options_.tasks.size();
  auto& planned = addition.plan.tasks;
  planned.erase(planned.begin(), planned.begin() + static_cast<std::ptrdiff_t>(first));
  const std::vector<std::string> prints = fingerprints_of(addition.tasks);
  options_.fingerprints.resize(first);
  options_.fingerprints.insert(options_.fingerprints.end(), prints.begin(), prints.end());
  messages_.expect(addition.tasks);
  for (std::size_t i = 0; i < addition.tasks.size(); ++i) {
    planned[i].resources = addition.tasks[i].resources;
    planned[i].attempts_before = known[i].attempts;
    if (known[i].state == TaskState::kSucceeded) {
      planned[i].state = TaskState::kSucceeded;
      if (options_.on_task_end) options_.on_task_end(addition.tasks[i], TaskState::kSucceeded);
    }
    book_.add_key(known[i].key);
    options_.tasks.push_back(std::move(addition.tasks[i]));
  }
  eta_.add(planned);
  feed(scheduler::TasksAdded{.tasks = std::move(planned)});
  settle();
}

void Batch::feed(const scheduler::Event& event) {
  auto actions = planner_.handle(parts_.clock.boottime(), event);
  std::move(actions.begin(), actions.end(), std::back_inserter(actions_));
}

void Batch::settle() {
  auto events = parts_.executor.take_events();
  do {
    for (const ExecutorEvent& event : events) std::visit([this](const auto& one) { on(one); }, event);
    for (std::size_t i = 0; i < actions_.size(); ++i) {  // grows while it is done
      const scheduler::Action action = std::move(actions_[i]);
      std::visit([this](const auto& one) { act(one); }, action);
    }
    actions_.clear();
    for (const AttemptId id : starts_.take_unwanted(ending_.draining))
      never_ran(id, {.ran = EndEvidence::Ran::kNotWanted});
    const auto counts = planner_.counts();
    starts_.run(counts.waiting + counts.ready + counts.backing_off);
    if (starts_.folder_removed()) drain();
    events = parts_.executor.take_events();
  } while (!events.empty() || !actions_.empty());
  tell_queue_state();
  finish_when_done();
}

// The recording needs to know whether a free GPU had work that waited, not how much.
void Batch::tell_queue_state() {
  const std::int64_t waiting = ending_.draining ? 0 : planner_.counts().ready_for_gpu;
  if ((waiting > 0) == told_.tasks_wait) return;
  told_.tasks_wait = waiting > 0;
  parts_.recorder.add_event(queue_event(waiting, parts_.clock.boottime()));
}

void Batch::finish_when_done() {
  if (ending_.done || !planner_.finished() || !starts_.empty()) return;
  if (options_.more_may_come && !ending_.draining && options_.more_may_come()) return;
  if (parts_.journal.pending() && !(starts_.journal_fails() && ending_.stopping)) return;  // a person may give it up
  ending_.done = true;
}

std::size_t Batch::running() const { return book_.count(Stage::kStarting) + book_.count(Stage::kRunning); }

std::string Batch::gpu_name(const std::string& uuid) const {
  for (const BatchGpu& gpu : options_.gpus)
    if (gpu.uuid == uuid) return fmt::format("GPU {}", gpu.index);
  return uuid;
}

std::vector<scheduler::Eta::Running> Batch::how_far(Nanos now) const {
  std::vector<scheduler::Eta::Running> running;
  for (const BookedAttempt* attempt : book_.all(Stage::kRunning)) {
    const auto alone_time = planner_.alone_time(attempt->facts.id, now).value_or(scheduler::AloneTime{});
    running.push_back({.task = attempt->facts.task,
                       .done = static_cast<Nanos>(alone_time.done_seconds * 1e9),
                       .speed = alone_time.speed});
  }
  return running;
}

BatchProgress Batch::progress() const {
  const Nanos now = parts_.clock.boottime();
  const auto counts = planner_.counts();
  const auto prepared = static_cast<std::int64_t>(starts_.size());  // the planner gave them a place; nothing runs yet
  BatchProgress progress{.tasks = {.total = counts.total,
                                   .waiting = counts.waiting,
                                   .ready = counts.ready + prepared,
                                   .running = counts.running - prepared,
                                   .backing_off = counts.backing_off,
                                   .succeeded = counts.succeeded,
                                   .failed = counts.failed,
                                   .skipped = counts.skipped,
                                   .cancelled = counts.cancelled},
                         .elapsed = now - times_.begin,
                         .waiting_for = starts_.why_waiting(),
                         .draining = ending_.draining};
  if (progress.waiting_for.empty()) progress.waiting_for = planner_.why_waiting();
  std::map<std::string_view, std::size_t> begun;  // by GPU: the planner counts what has a place as well
  for (const Stage stage : {Stage::kStarting, Stage::kRunning})
    for (const BookedAttempt* attempt : book_.all(stage))
      for (const std::string& uuid : attempt->facts.gpu_uuids) begun[uuid] += 1;
  const auto alone = planner_.alone_rates();
  for (std::size_t i = 0; i < options_.gpus.size(); ++i) {
    BatchProgress::Gpu row = statistics_.progress_of(options_.gpus[i], alone);
    const auto view = planner_.gpu(static_cast<scheduler::GpuIndex>(i));
    row.usable = view.usable;
    row.running = begun[options_.gpus[i].uuid];
    if (const GpuSnapshot* seen = watch_.gpu(options_.gpus[i].uuid))
      row.used_bytes = seen->used_bytes, row.util_ratio = seen->util_ratio, row.power_watts = seen->power_watts,
      row.temperature_celsius = seen->temperature_celsius;
    progress.gpus.push_back(row);
  }
  for (const BookedAttempt* attempt : book_.all(Stage::kRunning))
    progress.running.push_back({.task = spec(attempt->facts.task).name,
                                .elapsed = now - attempt->start,
                                .attempt = attempt->facts.id,
                                .log_path = attempt->facts.log_path});
  std::stable_sort(progress.running.begin(), progress.running.end(),
                   [](const auto& a, const auto& b) { return a.elapsed > b.elapsed; });
  if (const auto expected = eta_.estimate(how_far(now)))
    progress.left = expected->left, progress.left_low = expected->low, progress.left_high = expected->high;
  return progress;
}

BatchEnd Batch::end() const {
  BatchEnd end{.summary = statistics_.summary(planner_, parts_.clock.boottime() - times_.begin),
               .cpu_fallbacks = statistics_.cpu_fallbacks(),
               .on_gpus = statistics_.on_gpus(),
               .signal = ending_.signal,
               .unwritten = parts_.journal.results_pending()};
  end.reason = ending_.stopping             ? "stopped"
               : ending_.draining           ? "drained"
               : end.summary.tasks.left > 0 ? "failed"
                                            : "finished";
  return end;
}

}  // namespace headroom::batch
