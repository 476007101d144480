// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "base/filesystem.h"
#include "base/human.h"
#include "base/strings.h"
#include "batch/batch.h"
#include "batch/events.h"
#include "output/log_facts.h"
#include "output/oom.h"
#include "tasks/template.h"

// An attempt from the planner's wish to its last line in the journal.
namespace headroom::batch {

namespace {

constexpr Nanos kWriteAgain = kSecond;              // after the journal could not be written
constexpr std::int64_t kRoomForLogs = 3 << 20;      // more than the journal's reserve, which is not for them
constexpr Nanos kCommitWithin = 10 * kMillisecond;  // what is only nice to know
constexpr std::size_t kTail = 64 * 1024;            // of a log, for the words of an OOM

std::string file_name_of(const std::string& task) {
  constexpr std::size_t kLongest = 80;
  std::string name = task.substr(0, kLongest);
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && std::strchr("._-+=@", c) == nullptr) c = '_';
  return name;
}

std::string words_of(ExitStatus status) {
  if (status.signal == 0) return fmt::format("exit code {}", status.code);
  const char* name = ::sigabbrev_np(status.signal);
  return fmt::format("killed by signal {} (SIG{})", status.signal, name != nullptr ? name : "?");
}

std::string words_of(scheduler::StopReason reason) {
  switch (reason) {
    case scheduler::StopReason::kTimedOut:
      return "ran longer than its timeout";
    case scheduler::StopReason::kHung:
      return "made no progress on CPU, I/O and GPU";
    case scheduler::StopReason::kCancelled:
      return "cancelled";
    case scheduler::StopReason::kBatchStopped:
      return "the batch was stopped";
    case scheduler::StopReason::kDeviceLost:
      return "its GPU was lost";
  }
  return "";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> Batch::environment_for(const TaskSpec& task,
                                                                        const tasks::Place& place) const {
  std::vector<std::pair<std::string, std::string>> result;
  for (const auto& [name, value] : task.environment) result.emplace_back(name, tasks::fill_place(value, place));
  if (options_.pin == PinBy::kNothing) return result;
  std::vector<std::string> visible;
  for (std::size_t i = 0; i < place.gpu_uuid.size(); ++i)
    visible.push_back(options_.pin == PinBy::kUuid ? place.gpu_uuid[i] : fmt::format("{}", place.gpu_index[i]));
  result.emplace_back("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  result.emplace_back("CUDA_VISIBLE_DEVICES", join(visible, ","));
  return result;
}

void Batch::prepare(const scheduler::StartAttempt& start) {
  const TaskSpec& task = spec(start.task);
  tasks::Place place{.slot = start.slot};
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
  for (const std::string& word : task.argv) facts.argv.push_back(tasks::fill_place(word, place));
  facts.environment = environment_for(task, place);
  facts.working_directory = task.working_directory;
  facts.git_commit = options_.git_commit, facts.git_dirty = options_.git_dirty;
  facts.driver_version = options_.driver_version;
  facts.log_path = fmt::format("{}/logs/{}-{}.log", options_.folder, start.attempt, file_name_of(task.name));
  if (start.reserved_gpu_bytes > 0) facts.reserved_gpu_bytes = start.reserved_gpu_bytes;
  if (options_.inspect_inputs) facts.input_hashes = options_.inspect_inputs(task);
  parts_.journal.note_started(facts, known_[start.task].key);
  live_.emplace(start.attempt, std::move(live));
  prepared_.push_back(start.attempt);
}

// Nothing starts that is not written down, or whose output has no room.
void Batch::start_prepared() {
  abandon_unwanted();
  if (auto written = parts_.journal.commit(); !written) {
    if (!std::exchange(journal_failing_, true))
      note(NoteKind::kProblem,
           fmt::format("{}; nothing more is started until it can be written ({} ended, not yet written)",
                       written.error().what, parts_.journal.results_pending()));
    commit_soon(kWriteAgain);
    return;
  }
  if (std::exchange(journal_failing_, false)) note(NoteKind::kFact, "the journal can be written again");
  if (prepared_.empty()) return;
  if (!room_for_logs()) return commit_soon(kWriteAgain);
  std::vector<AttemptId> ready;
  ready.swap(prepared_);
  for (const AttemptId attempt : ready) start_one(attempt);
  commit_soon(kCommitWithin);
}

// What was stopped while it waited for the journal or for room never ran.
void Batch::abandon_unwanted() {
  for (const AttemptId attempt : std::vector<AttemptId>(prepared_)) {
    const auto found = live_.find(attempt);
    if (found == live_.end() || (!found->second.stop_reason && !draining_)) continue;
    found->second.facts.reason =
        found->second.stop_reason ? words_of(*found->second.stop_reason) : "the batch was ended before it started";
    std::erase(prepared_, attempt);
    abandon(attempt, AttemptOutcome::kInterrupted);
  }
}

bool Batch::disk_full() const {
  const auto room = free_bytes(options_.folder);
  return room && *room < static_cast<std::uint64_t>(kRoomForLogs);
}

// On a full disk one task after the other would fail at its first line of output.
bool Batch::room_for_logs() {
  const bool room = boottime_now() >= no_room_until_ && !disk_full();
  if (!room && !std::exchange(no_room_, true)) {
    const auto counts = planner_.counts();
    note(NoteKind::kProblem,
         fmt::format("the disk of {} is full: what tasks print may be lost; nothing more is started until {} are free "
                     "({} running, {} not started)",
                     options_.folder, human_bytes(kRoomForLogs), processes_->running(),
                     counts.waiting + counts.ready + counts.backing_off + static_cast<std::int64_t>(prepared_.size())));
  }
  if (room && std::exchange(no_room_, false)) note(NoteKind::kFact, "there is room on the disk again");
  return room;
}

// By pid and start time a resume finds a process that has hidden its marker. One that ends within the time of a commit
// is not worth the look.
void Batch::note_fresh() {
  for (const AttemptId attempt : std::exchange(fresh_, {})) {
    const auto found = live_.find(attempt);
    if (found == live_.end()) continue;
    Attempt& facts = found->second.facts;
    facts.process_start = process_start(static_cast<pid_t>(facts.pid));
    parts_.journal.note_process(attempt, facts.pid, facts.process_start);
  }
}

void Batch::start_one(AttemptId attempt) {
  const auto found = live_.find(attempt);
  if (found == live_.end()) return;
  Live& live = found->second;
  live.start = live.alone_at = boottime_now();
  const auto pid = processes_->start({.attempt = attempt,
                                      .argv = live.facts.argv,
                                      .environment = live.facts.environment,
                                      .working_directory = live.facts.working_directory,
                                      .log_path = live.facts.log_path});
  if (!pid) {
    live.facts.reason = pid.error().what;
    if (pid.error().code != Errc::kNoSpace) return abandon(attempt, AttemptOutcome::kNotStarted);
    no_room_until_ = boottime_now() + kWriteAgain;
    return abandon(attempt, AttemptOutcome::kInterrupted);
  }
  live.started = true;
  live.facts.pid = *pid;
  fresh_.push_back(attempt);
  if (sensors_ && !watching_tree_ && parts_.watch_tree) parts_.watch_tree(*pid);
  watching_tree_ = true;
  if (!live.gpus.empty()) unseen_since_ = boottime_now();
  if (sensors_) sensors_->add_event(start_event(spec(live.facts.task), live.facts, live.start));
  feed(scheduler::AttemptStarted{.attempt = attempt});
}

// How fast it is beside those on its GPU, as the planner predicts, since the last time this was asked.
void Batch::count_alone(Live& live, Nanos now) const {
  live.alone_seconds += live.speed * seconds(std::max<Nanos>(0, now - live.alone_at));
  live.alone_at = now;
  live.speed = 1;
  constexpr double kSlowest = 0.02;
  for (const scheduler::GpuIndex index : live.gpus) {
    const auto gpu = planner_.gpu(index);
    const auto tasks = static_cast<double>(gpu.running.size());
    if (tasks > 1) live.speed = std::min(live.speed, std::clamp(gpu.predicted_rate / tasks, kSlowest, 1.0));
  }
}

// It never ran.
void Batch::abandon(AttemptId attempt, AttemptOutcome outcome) {
  auto node = live_.extract(attempt);
  Attempt facts = std::move(node.mapped().facts);
  facts.end = realtime_now();
  const std::string reason = facts.reason;
  ended_.emplace(attempt, Closing{.facts = std::move(facts)});
  feed(scheduler::AttemptEnded{.attempt = attempt, .outcome = outcome, .reason = reason});
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
  count_alone(live, ended.at);
  const AttemptOutcome outcome = judge(live, ended);
  if (options_.count_steps) facts.steps = options_.count_steps(facts);
  if (options_.inspect_log) options_.inspect_log(spec(facts.task), facts);
  scheduler::AttemptEnded event{.attempt = ended.attempt,
                                .outcome = outcome,
                                .peak_gpu_bytes = facts.peak_gpu_bytes,
                                .peak_host_bytes = facts.peak_host_bytes,
                                .gpu_time = facts.gpu_time,
                                .cpu_time = facts.cpu_time,
                                .reason = facts.reason};
  if (live.first_kernel) event.startup = *live.first_kernel - live.start;
  const double took = seconds(ended.at - live.start);
  const double stretch = live.alone_seconds > 0 ? std::max(1.0, took / live.alone_seconds) : 1;
  ended_.emplace(ended.attempt, Closing{.facts = std::move(facts), .stretch = stretch});
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
  const std::string tail = read_tail(facts.log_path, kTail);
  output::OomEvidence evidence{.exit_code = ended.status.as_code(), .output_tail = tail};
  if (!live.gpus.empty()) {
    const BatchGpu& gpu = options_.gpus[static_cast<std::size_t>(live.gpus.front())];
    if (const auto now = gpu_now_.find(gpu.uuid); now != gpu_now_.end())
      evidence.peak_gpu_used_bytes = now->second.used_bytes;
    if (gpu.memory_bytes > 0) evidence.gpu_memory_bytes = gpu.memory_bytes;
  }
  if (ended.status.signal == SIGKILL) evidence.cgroup_oom_kills = cgroup_.oom_kills() - oom_kills_before_;
  const output::OomVerdict verdict = output::recognise_oom(evidence);
  if (verdict.kind == output::OomKind::kNone) {
    if (!disk_full()) {
      if (const std::string last = output::last_words(tail); !last.empty()) facts.reason += ": " + last;
      return AttemptOutcome::kFailed;
    }
    facts.reason += ", on a full disk";
    note(NoteKind::kProblem,
         fmt::format("{}: {}; it runs again once there is room", spec(facts.task).name, facts.reason));
    return AttemptOutcome::kInterrupted;
  }
  if (evidence.cgroup_oom_kills > 0) oom_kills_before_ += evidence.cgroup_oom_kills;
  facts.reason = verdict.evidence;
  return output::is_host(verdict.kind) ? AttemptOutcome::kHostOutOfMemory : AttemptOutcome::kGpuOutOfMemory;
}

void Batch::stop_attempt(const scheduler::StopAttempt& stop) {
  if (const auto found = live_.find(stop.attempt); found != live_.end()) found->second.stop_reason = stop.reason;
  processes_->stop(stop.attempt);
}

void Batch::close(const scheduler::CloseAttempt& closed) {
  auto node = ended_.extract(closed.attempt);
  if (node.empty()) return;
  Attempt& facts = node.mapped().facts;
  facts.outcome = closed.outcome;
  if (closed.outcome == AttemptOutcome::kSucceeded) {
    facts.reason.clear();
    took_[facts.task] = static_cast<Nanos>(static_cast<double>(*facts.end - facts.start) / node.mapped().stretch);
  }
  parts_.journal.note_ended(facts);
  count(facts);
  if (sensors_ && facts.pid != 0) sensors_->add_event(end_event(spec(facts.task), facts, boottime_now()));
  if (!options_.learn || closed.outcome != AttemptOutcome::kSucceeded) return;
  std::string model;
  for (const BatchGpu& gpu : options_.gpus)
    if (!facts.gpu_uuids.empty() && gpu.uuid == facts.gpu_uuids.front()) model = gpu.model;
  options_.learn(spec(facts.task), facts, model, node.mapped().stretch);
}

void Batch::requeue(const scheduler::RequeueTask& requeue) {
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
  say(end_notes_.again(task, info(requeue.after).label, next));
}

void Batch::end_task(const scheduler::EndTask& end) {
  const TaskSpec& task = spec(end.task);
  if (const auto took = took_.extract(end.task); eta_)
    eta_->ended(end.task, took ? std::optional(took.mapped()) : std::nullopt);
  parts_.journal.note_task(known_[end.task].key, end.state, end.reason);
  say(end_notes_.ended(task, end.state, end.reason));
  if (end.state == TaskState::kSucceeded) {
    if (end.task < options_.fingerprints.size() && !options_.fingerprints[end.task].empty())
      parts_.journal.note_fingerprint(known_[end.task].key, options_.fingerprints[end.task]);
    return;
  }
  if (end.state != TaskState::kFailed) return;
  failed_.push_back(task.name);
  if (options_.max_failures == 0 || static_cast<int>(failed_.size()) != options_.max_failures || draining_) return;
  note(NoteKind::kProblem, fmt::format("{} {} failed, as many as --max-failures allows", failed_.size(),
                                       failed_.size() == 1 ? "task has" : "tasks have"));
  drain();
}

}  // namespace headroom::batch
