// SPDX-License-Identifier: Apache-2.0
#include "live/batch.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <variant>

#include "base/human.h"
#include "base/strings.h"
#include "live/job.h"
#include "run/oom.h"
#include "run/template.h"

namespace headroom::batch {

namespace {

constexpr Nanos kWriteAgain = kSecond;              // after the journal could not be written
constexpr Nanos kCommitWithin = 10 * kMillisecond;  // what is only nice to know
constexpr Nanos kLookLost = 3 * kSecond;            // without a look at the GPUs for so long, none will come
constexpr std::size_t kTail = 64 * 1024;            // of a log, for the words of an OOM

std::string file_name_of(const std::string& task) {
  constexpr std::size_t kLongest = 80;
  std::string name = task.substr(0, kLongest);
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && std::strchr("._-+=@", c) == nullptr) c = '_';
  return name;
}

std::string tail_of(const std::string& path) {
  const auto file = open_read(path);
  if (!file) return "";
  const off_t size = ::lseek(file->get(), 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(kTail));
  std::string text(static_cast<std::size_t>(std::max<off_t>(0, size - from)), '\0');
  const ssize_t got = ::pread(file->get(), text.data(), text.size(), from);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  return text;
}

std::string words_of(ExitStatus status) {
  if (status.signal == 0) return fmt::format("exit code {}", status.code);
  const char* name = ::sigabbrev_np(status.signal);
  return fmt::format("killed by signal {} (SIG{})", status.signal, name != nullptr ? name : "?");
}

std::string words_of(run::StopReason reason) {
  switch (reason) {
    case run::StopReason::kTimedOut:
      return "ran longer than its timeout";
    case run::StopReason::kHung:
      return "made no progress on CPU, I/O and GPU";
    case run::StopReason::kCancelled:
      return "cancelled";
    case run::StopReason::kBatchStopped:
      return "the batch was stopped";
    case run::StopReason::kDeviceLost:
      return "its GPU was lost";
  }
  return "";
}

// How often the kernel's OOM killer struck in this process's cgroup.
std::int64_t oom_kills() {
  const auto place = read_file("/proc/self/cgroup", 1 << 16);
  if (!place) return 0;
  for (const auto line : split(*place, '\n')) {
    if (!line.starts_with("0::")) continue;
    const auto events = read_file(fmt::format("/sys/fs/cgroup{}/memory.events", line.substr(3)), 1 << 16);
    if (!events) return 0;
    for (const auto entry : split(*events, '\n'))
      if (entry.starts_with("oom_kill ")) return parse_number<std::int64_t>(entry.substr(9)).value_or(0);
  }
  return 0;
}

run::PlannerSetup setup_with(const BatchOptions& options, AttemptId first) {
  run::PlannerSetup setup = options.planner;
  for (const BatchGpu& gpu : options.gpus)
    setup.gpus.push_back({.uuid = gpu.uuid, .model = gpu.model, .memory_bytes = gpu.memory_bytes});
  setup.first_attempt = first;
  return setup;
}

}  // namespace

Batch::Batch(BatchOptions options, run::TaskPlan plan, std::vector<KnownTask> known, Parts parts)
    : options_(std::move(options)),
      plan_(std::move(plan)),
      known_(std::move(known)),
      parts_(std::move(parts)),
      planner_(setup_with(options_, parts_.journal.next_attempt())) {
  if (const auto boot = read_file("/proc/sys/kernel/random/boot_id", 256)) boot_id_ = trim(*boot);
  for (TaskIndex i = 0; i < options_.tasks.size(); ++i) by_name_.emplace(spec(i).name, i);
}

BatchEnd Batch::run() {
  ForegroundJob::adopt_orphans();
  start_ = boottime_now();
  oom_kills_before_ = oom_kills();
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
  run::TasksAdded added;
  for (run::PlannedTask task : plan_.tasks) {
    const KnownTask& known = known_[task.task];
    task.attempts_before = known.attempts;
    if (known.state == TaskState::kSucceeded) task.state = TaskState::kSucceeded;
    if (!has_ended(known.state)) task.failures_before = known.failures;
    if (known.in_flight) summary_.rerun_after_crash.push_back(spec(task.task).name);
    added.tasks.push_back(std::move(task));
  }
  acting_ = true;  // limits first, then everything at once
  for (const GroupSpec& limit : options_.group_limits)
    for (std::size_t i = 0; i < plan_.groups.size(); ++i)
      if (plan_.groups[i] == limit.name)
        feed(run::GroupLimit{.group = static_cast<run::GroupIndex>(i), .max_running = limit.max_running});
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
  feed(run::Drain{});
}

void Batch::stop() {
  if (std::exchange(stopping_, true)) return;
  draining_ = true;
  note(NoteKind::kFact, fmt::format("stopping {} running {}; they will run again at the next resume",
                                    processes_->running(), processes_->running() == 1 ? "task" : "tasks"));
  feed(run::Stop{});
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
  feed(run::CancelTask{.task = found->second});
  return {};
}

void Batch::feed(const run::Event& event) {
  auto actions = planner_.handle(boottime_now(), event);
  std::move(actions.begin(), actions.end(), std::back_inserter(actions_));
  if (!acting_) act();
}

void Batch::act() {
  acting_ = true;
  do {
    for (std::size_t i = 0; i < actions_.size(); ++i) {  // grows while it is done
      const run::Action action = std::move(actions_[i]);
      do_action(action);
    }
    actions_.clear();
    start_prepared();
  } while (!actions_.empty());
  acting_ = false;
  set_wake();
  finish_when_done();
}

void Batch::do_action(const run::Action& action) {
  if (const auto* start = std::get_if<run::StartAttempt>(&action)) return prepare(*start);
  if (const auto* stop = std::get_if<run::StopAttempt>(&action)) return stop_attempt(*stop);
  if (const auto* closed = std::get_if<run::CloseAttempt>(&action)) return close(*closed);
  if (const auto* again = std::get_if<run::RequeueTask>(&action)) return requeue(*again);
  if (const auto* end = std::get_if<run::EndTask>(&action)) return end_task(*end);
  if (const auto* bad = std::get_if<run::QuarantineGpu>(&action)) {
    const BatchGpu& gpu = options_.gpus[static_cast<std::size_t>(bad->gpu)];
    note(NoteKind::kProblem, fmt::format("GPU {} gets no more tasks: {}", gpu.index, bad->reason));
    quarantined_.insert(gpu.uuid);
  }
}

std::vector<std::pair<std::string, std::string>> Batch::environment_for(const TaskSpec& task,
                                                                        const run::Place& place) const {
  std::vector<std::pair<std::string, std::string>> result;
  for (const auto& [name, value] : task.environment) result.emplace_back(name, run::fill_place(value, place));
  if (options_.pin == PinBy::kNothing) return result;
  std::vector<std::string> visible;
  for (std::size_t i = 0; i < place.gpu_uuid.size(); ++i)
    visible.push_back(options_.pin == PinBy::kUuid ? place.gpu_uuid[i] : fmt::format("{}", place.gpu_index[i]));
  result.emplace_back("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  result.emplace_back("CUDA_VISIBLE_DEVICES", join(visible, ","));
  return result;
}

void Batch::prepare(const run::StartAttempt& start) {
  const TaskSpec& task = spec(start.task);
  run::Place place{.slot = start.slot};
  Live live;
  live.gpus = start.gpus;
  for (const auto index : start.gpus) {
    const BatchGpu& gpu = options_.gpus[static_cast<std::size_t>(index)];
    place.gpu_index.push_back(gpu.index);
    place.gpu_uuid.push_back(gpu.uuid);
  }
  Attempt& facts = live.facts;
  facts.id = start.attempt, facts.task = start.task, facts.number = start.number, facts.slot = start.slot;
  facts.gpu_uuids = place.gpu_uuid;
  facts.boot_id = boot_id_;
  facts.start = realtime_now();
  for (const std::string& word : task.argv) facts.argv.push_back(run::fill_place(word, place));
  facts.environment = environment_for(task, place);
  facts.working_directory = task.working_directory;
  facts.git_commit = options_.git_commit, facts.git_dirty = options_.git_dirty;
  facts.driver_version = options_.driver_version;
  facts.log_path = fmt::format("{}/logs/{}-{}.log", options_.folder, start.attempt, file_name_of(task.name));
  if (start.reserved_gpu_bytes > 0) facts.reserved_gpu_bytes = start.reserved_gpu_bytes;
  if (options_.inspect_inputs) facts.input_hashes = options_.inspect_inputs(task);
  for (auto& [id, other] : live_) {
    const bool shared = std::any_of(other.gpus.begin(), other.gpus.end(), [&](run::GpuIndex gpu) {
      return std::find(start.gpus.begin(), start.gpus.end(), gpu) != start.gpus.end();
    });
    if (shared) other.company = live.company = true;
  }
  parts_.journal.note_started(facts, known_[start.task].key);
  live_.emplace(start.attempt, std::move(live));
  prepared_.push_back(start.attempt);
}

// Nothing starts that is not written down.
void Batch::start_prepared() {
  if (auto written = parts_.journal.commit(); !written) {
    if (!std::exchange(journal_failing_, true))
      note(NoteKind::kProblem,
           fmt::format("{}; nothing more is started until it can be written ({} ended, not yet written)",
                       written.error().what, parts_.journal.results_pending()));
    commit_soon(kWriteAgain);
    return;
  }
  if (std::exchange(journal_failing_, false)) note(NoteKind::kFact, "the journal can be written again");
  std::vector<AttemptId> ready;
  ready.swap(prepared_);
  for (const AttemptId attempt : ready) start_one(attempt);
  if (!ready.empty()) commit_soon(kCommitWithin);
}

void Batch::start_one(AttemptId attempt) {
  const auto found = live_.find(attempt);
  if (found == live_.end()) return;
  Live& live = found->second;
  if (live.stop_reason) {  // while it waited for the journal
    live.facts.reason = words_of(*live.stop_reason);
    return abandon(attempt, AttemptOutcome::kInterrupted);
  }
  live.start = boottime_now();
  const auto pid = processes_->start({.attempt = attempt,
                                      .argv = live.facts.argv,
                                      .environment = live.facts.environment,
                                      .working_directory = live.facts.working_directory,
                                      .log_path = live.facts.log_path});
  if (!pid) {
    live.facts.reason = pid.error().what;
    return abandon(attempt, AttemptOutcome::kNotStarted);
  }
  live.started = true;
  live.facts.pid = *pid;
  live.facts.process_start = process_start(*pid);
  parts_.journal.note_process(attempt, *pid, live.facts.process_start);
  if (sensors_ && !watching_tree_ && parts_.watch_tree) parts_.watch_tree(*pid);
  watching_tree_ = true;
  if (!live.gpus.empty()) unseen_since_ = boottime_now();
  feed(run::AttemptStarted{.attempt = attempt});
}

// It never ran.
void Batch::abandon(AttemptId attempt, AttemptOutcome outcome) {
  auto node = live_.extract(attempt);
  Attempt facts = std::move(node.mapped().facts);
  facts.end = realtime_now();
  const std::string reason = facts.reason;
  ended_.emplace(attempt, std::move(facts));
  feed(run::AttemptEnded{.attempt = attempt, .outcome = outcome, .reason = reason});
}

void Batch::on_ended(const Ended& ended) {
  auto node = live_.extract(ended.attempt);
  if (node.empty()) return;
  Live& live = node.mapped();
  Attempt& facts = live.facts;
  facts.end = realtime_now();
  facts.exit_code = ended.status.as_code();
  facts.cpu_time = ended.cpu_time;
  facts.peak_host_bytes = std::max(ended.peak_host_bytes, facts.peak_host_bytes.value_or(0));
  if (live.gpu_time_known) facts.gpu_time = static_cast<Nanos>(live.gpu_seconds * 1e9);
  facts.seen_gpu_uuids.assign(live.seen.begin(), live.seen.end());
  facts.proof = proof_of(live, ended.at);
  if (live.company) had_company_.insert(ended.attempt);
  const AttemptOutcome outcome = judge(live, ended);
  if (options_.inspect_log) options_.inspect_log(facts);
  run::AttemptEnded event{.attempt = ended.attempt,
                          .outcome = outcome,
                          .peak_gpu_bytes = facts.peak_gpu_bytes,
                          .peak_host_bytes = facts.peak_host_bytes,
                          .gpu_time = facts.gpu_time,
                          .reason = facts.reason};
  if (live.first_kernel) event.startup = *live.first_kernel - live.start;
  ended_.emplace(ended.attempt, std::move(facts));
  // A task that fails on a GPU may have failed because of it: whether the driver has lost it shows at the next look.
  // Until then its place stays taken, or a dead GPU would eat the queue.
  if (outcome == AttemptOutcome::kFailed && !live.gpus.empty() && last_sensed_ != 0 && !gpu_now_.empty())
    return later_.push_back({.at = ended.at, .event = std::move(event)});
  feed(event);
}

void Batch::feed_later(Nanos seen) {
  std::vector<Later> due;
  std::erase_if(later_, [&](Later& later) {
    if (later.at >= seen) return false;
    due.push_back(std::move(later));
    return true;
  });
  for (const Later& later : due) feed(later.event);
}

AttemptOutcome Batch::judge(Live& live, const Ended& ended) {
  Attempt& facts = live.facts;
  if (ended.status.as_code() == 0) return AttemptOutcome::kSucceeded;
  facts.reason = words_of(ended.status);
  if (live.stopped_as) {
    facts.reason = fmt::format("stopped: it computed on another GPU than the one it was given");
    return *live.stopped_as;
  }
  if (live.stop_reason) {
    facts.reason = fmt::format("{} ({})", words_of(*live.stop_reason), words_of(ended.status));
    return AttemptOutcome::kInterrupted;
  }
  const std::string tail = tail_of(facts.log_path);
  run::OomEvidence evidence{.exit_code = ended.status.as_code(), .output_tail = tail};
  if (!live.gpus.empty()) {
    const BatchGpu& gpu = options_.gpus[static_cast<std::size_t>(live.gpus.front())];
    if (const auto now = gpu_now_.find(gpu.uuid); now != gpu_now_.end())
      evidence.peak_gpu_used_bytes = now->second.used_bytes;
    if (gpu.memory_bytes > 0) evidence.gpu_memory_bytes = gpu.memory_bytes;
  }
  if (ended.status.signal == SIGKILL) evidence.cgroup_oom_kills = oom_kills() - oom_kills_before_;
  const run::OomVerdict verdict = run::recognise_oom(evidence);
  if (verdict.kind == run::OomKind::kNone) return AttemptOutcome::kFailed;
  if (evidence.cgroup_oom_kills > 0) oom_kills_before_ += evidence.cgroup_oom_kills;
  facts.reason = verdict.evidence;
  return run::is_host(verdict.kind) ? AttemptOutcome::kHostOutOfMemory : AttemptOutcome::kGpuOutOfMemory;
}

void Batch::stop_attempt(const run::StopAttempt& stop) {
  if (const auto found = live_.find(stop.attempt); found != live_.end()) found->second.stop_reason = stop.reason;
  processes_->stop(stop.attempt);
}

void Batch::close(const run::CloseAttempt& closed) {
  auto node = ended_.extract(closed.attempt);
  if (node.empty()) return;
  Attempt& facts = node.mapped();
  facts.outcome = closed.outcome;
  if (closed.outcome == AttemptOutcome::kSucceeded) facts.reason.clear();
  parts_.journal.note_ended(facts);
  count(facts);
  const bool alone = had_company_.erase(closed.attempt) == 0;
  if (options_.learn && alone && closed.outcome == AttemptOutcome::kSucceeded) {
    std::string model;
    for (const BatchGpu& gpu : options_.gpus)
      if (!facts.gpu_uuids.empty() && gpu.uuid == facts.gpu_uuids.front()) model = gpu.model;
    options_.learn(spec(facts.task), facts, model);
  }
  if (sensors_) {
    sensors_->add_event({.at = boottime_now(),
                         .kind = "attempt_end",
                         .attrs = {{"task", spec(facts.task).name},
                                   {"attempt", fmt::format("{}", facts.id)},
                                   {"outcome", std::string(info(closed.outcome).name)},
                                   {"pid", fmt::format("{}", facts.pid)},
                                   {"gpus", join(facts.gpu_uuids, ",")}}});
  }
}

void Batch::requeue(const run::RequeueTask& requeue) {
  const std::string& task = spec(requeue.task).name;
  const bool oom =
      requeue.after == AttemptOutcome::kGpuOutOfMemory || requeue.after == AttemptOutcome::kHostOutOfMemory;
  if (oom) summary_.oom_requeues += 1;
  if (info(requeue.after).tasks_fault) summary_.retries += 1;
  if (requeue.after == AttemptOutcome::kInterrupted) return;
  std::string next = "runs again";
  if (requeue.alone)
    next = "runs again alone on its GPU";
  else if (oom && requeue.reserved_gpu_bytes > 0)
    next = fmt::format("requeued with {} reserved", human_bytes(requeue.reserved_gpu_bytes));
  else if (const Nanos wait = requeue.at - boottime_now(); wait > kSecond / 2)
    next = fmt::format("runs again in {}", human_duration(wait));
  note(NoteKind::kProblem, fmt::format("{}: {}, {}", task, info(requeue.after).label, next));
}

void Batch::end_task(const run::EndTask& end) {
  const TaskSpec& task = spec(end.task);
  parts_.journal.note_task(known_[end.task].key, end.state, end.reason);
  if (end.state == TaskState::kSucceeded) {
    if (end.task < options_.fingerprints.size() && !options_.fingerprints[end.task].empty())
      parts_.journal.note_fingerprint(known_[end.task].key, options_.fingerprints[end.task]);
    return;
  }
  if (end.state == TaskState::kFailed) failed_.push_back(task.name);
  note(end.state == TaskState::kFailed ? NoteKind::kProblem : NoteKind::kFact,
       fmt::format("{}: {}", task.name, end.reason.empty() ? std::string(name(end.state)) : end.reason));
}

void Batch::commit_soon(Nanos delay) {
  if (commit_timer_ != 0) return;
  commit_timer_ = parts_.loop.after(delay, [this] {
    commit_timer_ = 0;
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
    feed(run::Tick{});
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
