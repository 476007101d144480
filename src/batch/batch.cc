// SPDX-License-Identifier: Apache-2.0
#include "batch/batch.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <variant>

#include "base/human.h"
#include "base/ids.h"
#include "base/strings.h"
#include "batch/events.h"
#include "live/job.h"
#include "output/oom.h"
#include "tasks/template.h"

namespace headroom::batch {

namespace {

constexpr Nanos kLookLost = 3 * kSecond;  // without a look at the GPUs for so long, none will come

scheduler::PlannerSetup setup_with(const BatchOptions& options, AttemptId first) {
  scheduler::PlannerSetup setup = options.planner;
  for (const BatchGpu& gpu : options.gpus)
    setup.gpus.push_back({.uuid = gpu.uuid, .model = gpu.model, .memory_bytes = gpu.memory_bytes});
  setup.first_attempt = first;
  return setup;
}

}  // namespace

Batch::Batch(BatchOptions options, scheduler::TaskPlan plan, std::vector<KnownTask> known, Parts parts)
    : options_(std::move(options)),
      plan_(std::move(plan)),
      known_(std::move(known)),
      parts_(std::move(parts)),
      planner_(setup_with(options_, parts_.journal.next_attempt())),
      end_notes_(options_.tasks) {
  boot_id_ = boot_id();
  for (TaskIndex i = 0; i < options_.tasks.size(); ++i) by_name_.emplace(spec(i).name, i);
}

BatchEnd Batch::run() {
  ForegroundJob::adopt_orphans();
  start_ = boottime_now();
  oom_kills_before_ = cgroup_.oom_kills();
  processes_ = std::make_unique<Processes>(
      parts_.loop, parts_.guardian, parts_.journal.batch_id(), parts_.signals.mask_before(), options_.grace,
      Processes::Handlers{.on_end = [this](const Ended& ended) { on_ended(ended); },
                          .on_reaped = [](pid_t, ExitStatus) {},
                          .on_guardian_gone =
                              [this] {
                                note(NoteKind::kProblem,
                                     "the guardian process was killed: should headroom die as well, its tasks run on "
                                     "until the next resume");
                              },
                          .on_left_over =
                              [this](AttemptId, std::size_t count) {
                                note(NoteKind::kFact, fmt::format("stopped {} {} that a task left behind", count,
                                                                  count == 1 ? "process" : "processes"));
                              }});
  sensors_ = parts_.make_sensors([this](const Sensed& now) { sensed(now); },
                                 [this](const Error& error) {
                                   note(NoteKind::kProblem, fmt::format("the recording has stopped: {}; the batch and "
                                                                        "its journal go on",
                                                                        error.what));
                                 });
  const auto watched = parts_.loop.watch(parts_.signals.fd(), [this] { handle_signals(); });
  HR_CHECK(watched.has_value(), "a fresh event loop takes a descriptor");
  begin();
  every_second();
  finish_when_done();
  if (!done_) parts_.loop.run();
  parts_.loop.forget(parts_.signals.fd());
  for (const auto timer : {wake_, commit_timer_, second_}) parts_.loop.cancel(timer);
  processes_->stop_everything_left();
  return summary();
}

void Batch::begin() {
  scheduler::TasksAdded added;
  for (scheduler::PlannedTask task : plan_.tasks) {
    const KnownTask& known = known_[task.task];
    task.attempts_before = known.attempts;
    if (known.state == TaskState::kSucceeded) task.state = TaskState::kSucceeded;
    if (!has_ended(known.state)) task.failures_before = known.failures;
    if (known.in_flight) summary_.rerun_after_crash.push_back(spec(task.task).name);
    added.tasks.push_back(std::move(task));
  }
  eta_.emplace(added.tasks);
  acting_ = true;  // limits first, then everything at once
  for (const GroupSpec& limit : options_.group_limits)
    for (std::size_t i = 0; i < plan_.groups.size(); ++i)
      if (plan_.groups[i] == limit.name)
        feed(scheduler::GroupLimit{.group = static_cast<scheduler::GroupIndex>(i), .max_running = limit.max_running});
  feed(added);
  acting_ = false;
  act();
}

void Batch::handle_signals() {
  acting_ = true;  // everything that ended together is journalled together
  for (const Signal& signal : parts_.signals.drain())
    if (signal.number != SIGCHLD) interrupt(signal.number);
  processes_->reap();
  acting_ = false;
  act();
}

void Batch::interrupt(int signal) {
  if (signal == SIGINT && !draining_) {
    signal_ = signal;
    return drain();
  }
  if (signal != SIGINT && signal != SIGTERM && signal != SIGHUP && signal != SIGQUIT) return;
  signal_ = signal;
  if (!stopping_) return stop();
  note(NoteKind::kFact, "killing what still runs");
  for (const auto& [id, live] : live_) processes_->stop(id, true);
}

void Batch::drain() {
  if (std::exchange(draining_, true)) return;
  const auto running = processes_->running();
  note(NoteKind::kFact, fmt::format("ending: nothing more is started; {} {} may finish (Ctrl-C again stops them)",
                                    running, running == 1 ? "running task" : "running tasks"));
  feed(scheduler::Drain{});
}

void Batch::stop() {
  if (std::exchange(stopping_, true)) return;
  draining_ = true;
  note(NoteKind::kFact, fmt::format("stopping {} running {}; they will run again at the next resume",
                                    processes_->running(), processes_->running() == 1 ? "task" : "tasks"));
  feed(scheduler::Stop{});
}

Result<void> Batch::cancel(const std::string& task) {
  const auto found = by_name_.find(task);
  if (found == by_name_.end()) {
    std::vector<std::string_view> names;
    for (const auto& [name, index] : by_name_) names.push_back(name);
    const auto guess = closest(task, names);
    return fail(Errc::kNotFound, fmt::format("there is no task '{}'", task),
                guess.empty() ? "" : fmt::format("did you mean '{}'?", guess));
  }
  if (has_ended(planner_.state(found->second)))
    return fail(Errc::kInvalidInput, fmt::format("task '{}' has ended: {}", task, name(planner_.state(found->second))));
  feed(scheduler::CancelTask{.task = found->second});
  return {};
}

void Batch::feed(const scheduler::Event& event) {
  auto actions = planner_.handle(boottime_now(), event);
  std::move(actions.begin(), actions.end(), std::back_inserter(actions_));
  if (!acting_) act();
}

void Batch::act() {
  acting_ = true;
  do {
    for (std::size_t i = 0; i < actions_.size(); ++i) {  // grows while it is done
      const scheduler::Action action = std::move(actions_[i]);
      do_action(action);
    }
    actions_.clear();
    start_prepared();
  } while (!actions_.empty());
  acting_ = false;
  tell_queue();
  set_wake();
  finish_when_done();
}

// The recording needs to know whether a free GPU had work that waited, not how much.
void Batch::tell_queue() {
  const std::int64_t waiting = draining_ ? 0 : planner_.counts().ready_for_gpu;
  if (!sensors_ || (waiting > 0) == (queue_told_ > 0)) return;
  queue_told_ = waiting;
  sensors_->add_event(queue_event(waiting, boottime_now()));
}

void Batch::do_action(const scheduler::Action& action) {
  if (const auto* start = std::get_if<scheduler::StartAttempt>(&action)) return prepare(*start);
  if (const auto* stop = std::get_if<scheduler::StopAttempt>(&action)) return stop_attempt(*stop);
  if (const auto* closed = std::get_if<scheduler::CloseAttempt>(&action)) return close(*closed);
  if (const auto* again = std::get_if<scheduler::RequeueTask>(&action)) return requeue(*again);
  if (const auto* end = std::get_if<scheduler::EndTask>(&action)) return end_task(*end);
  if (const auto* bad = std::get_if<scheduler::QuarantineGpu>(&action)) {
    const BatchGpu& gpu = options_.gpus[static_cast<std::size_t>(bad->gpu)];
    note(NoteKind::kProblem, fmt::format("GPU {} gets no more tasks: {}", gpu.index, bad->reason));
    quarantined_.insert(gpu.uuid);
  }
}

void Batch::commit_soon(Nanos delay) {
  if (commit_timer_ != 0) return;
  commit_timer_ = parts_.loop.after(delay, [this] {
    commit_timer_ = 0;
    note_fresh();
    if (!acting_) act();
  });
}

void Batch::set_wake() {
  const auto next = planner_.next_wake();
  if (wake_ != 0 && next && *next == wake_at_) return;
  if (wake_ != 0) parts_.loop.cancel(std::exchange(wake_, 0));
  if (!next) return;
  wake_at_ = *next;
  wake_ = parts_.loop.at(std::max(*next, boottime_now() + kMillisecond), [this] {
    wake_ = 0;
    feed(scheduler::Tick{});
  });
}

void Batch::every_second() {
  second_ = parts_.loop.after(kSecond, [this] { every_second(); });
  processes_->look_for_orphans();
  watch_new_placements();
  if (!later_.empty()) feed_later(boottime_now() - kLookLost);
}

void Batch::finish_when_done() {
  if (done_ || !planner_.finished() || !prepared_.empty()) return;
  if (parts_.journal.pending() && !(journal_failing_ && stopping_)) return;  // a person may give it up
  done_ = true;
  parts_.loop.stop();
}

}  // namespace headroom::batch
