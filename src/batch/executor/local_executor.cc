// SPDX-License-Identifier: Apache-2.0
#include "batch/executor/local_executor.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "base/fd.h"
#include "base/filesystem.h"
#include "base/ids.h"
#include "base/strings.h"
#include "batch/messages.h"
#include "batch/sweep.h"
#include "live/job.h"

namespace headroom::batch {

namespace {

constexpr Nanos kIdentifyWithin = 10 * kMillisecond;  // what ends sooner is not worth the look

std::string file_name_of(const std::string& task) {
  constexpr std::size_t kLongest = 80;
  std::string name = task.substr(0, kLongest);
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && std::strchr("._-+=@", c) == nullptr) c = '_';
  return name;
}

}  // namespace

LocalExecutor::LocalExecutor(Loop& loop, Guardian& guardian, LocalExecutorOptions options)
    : loop_(loop),
      options_(std::move(options)),
      boot_id_(boot_id()),
      processes_(loop, guardian, options_.batch_id, options_.mask, options_.grace,
                 Processes::Handlers{
                     .on_exit = [this](const ChildExit& exit) { exited(exit); },
                     .on_guardian_gone = [this] { tell(MessageKind::kProblem, words::guardian_gone()); },
                     .on_left_over = [this](AttemptId,
                                            std::size_t count) { tell(MessageKind::kFact, words::left_over(count)); },
                     .on_reaped_by_timer =
                         [this] {
                           if (ready_ && !events_.empty()) ready_();
                         }}),
      oom_kills_told_(cgroup_.oom_kills()) {
  ForegroundJob::adopt_orphans();
  orphan_timer_ = loop_.after(kSecond, [this] { look_for_orphans(); });
}

LocalExecutor::~LocalExecutor() {
  loop_.cancel(identify_timer_);
  loop_.cancel(orphan_timer_);
}

void LocalExecutor::tell(MessageKind kind, std::string text) {
  events_.emplace_back(Message{.kind = kind, .text = std::move(text)});
}

void LocalExecutor::describe(const TaskSpec& task, Attempt& attempt) const {
  attempt.boot_id = boot_id_;
  attempt.log_path = fmt::format("{}/logs/{}-{}.log", options_.folder, attempt.id, file_name_of(task.name));
}

void LocalExecutor::start(std::vector<Launch> launches) {
  for (const Launch& launch : launches) start_one(launch);
  if (!fresh_.empty() && identify_timer_ == 0)
    identify_timer_ = loop_.after(kIdentifyWithin, [this] { identify_fresh(); });
}

void LocalExecutor::start_one(const Launch& launch) {
  const Nanos before = boottime_now();
  const auto pid = processes_.start(launch);
  if (!pid) {
    events_.emplace_back(AttemptNotStarted{
        .attempt = launch.attempt, .reason = pid.error().what, .passes = pid.error().code == Errc::kNoSpace});
    return;
  }
  fresh_.push_back({.attempt = launch.attempt, .pid = *pid});
  events_.emplace_back(AttemptRuns{.attempt = launch.attempt, .at = before, .pid = *pid});
}

// By pid and start time a resume finds a process that has hidden its marker.
void LocalExecutor::identify_fresh() {
  identify_timer_ = 0;
  for (const Fresh& fresh : std::exchange(fresh_, {}))
    if (processes_.attempt_of(fresh.pid) == fresh.attempt)
      events_.emplace_back(
          AttemptIdentified{.attempt = fresh.attempt, .pid = fresh.pid, .process_start = process_start(fresh.pid)});
  if (ready_ && !events_.empty()) ready_();
}

void LocalExecutor::stop(AttemptId attempt, StopHow how) { processes_.stop(attempt, how == StopHow::kAtOnce); }

std::vector<ExecutorEvent> LocalExecutor::take_events() {
  processes_.reap();
  return std::exchange(events_, {});
}

void LocalExecutor::exited(const ChildExit& exit) {
  AttemptExited event{.attempt = exit.attempt,
                      .status = exit.status,
                      .at = exit.at,
                      .cpu_time = exit.cpu_time,
                      .peak_host_bytes = exit.peak_host_bytes};
  // Whom the kernel killed it does not say: whoever was killed, and not by us.
  if (exit.status.signal == SIGKILL && !exit.told_to_stop) {
    const std::int64_t kills = cgroup_.oom_kills();
    event.oom_kills = std::max<std::int64_t>(0, kills - oom_kills_told_);
    oom_kills_told_ = std::max(kills, oom_kills_told_);
  }
  events_.emplace_back(event);
}

void LocalExecutor::look_for_orphans() {
  orphan_timer_ = loop_.after(kSecond, [this] { look_for_orphans(); });
  processes_.look_for_orphans();
  if (ready_ && !events_.empty()) ready_();
}

bool LocalExecutor::has_room() const {
  const auto room = free_bytes(options_.folder);
  return !room || *room >= static_cast<std::uint64_t>(kRoomForLogs);
}

std::string LocalExecutor::output_tail(const Attempt& attempt, std::size_t bytes) const {
  return read_tail(attempt.log_path, bytes);
}

std::optional<AttemptId> LocalExecutor::started_as(std::int64_t pid) const {
  return processes_.attempt_of(static_cast<pid_t>(pid));
}

std::optional<AttemptId> LocalExecutor::owner_of(std::int64_t pid) const {
  return attempt_of_process(static_cast<pid_t>(pid), options_.batch_id);
}

void LocalExecutor::finish() {
  loop_.cancel(std::exchange(identify_timer_, 0));
  loop_.cancel(std::exchange(orphan_timer_, 0));
  processes_.stop_everything_left();
}

}  // namespace headroom::batch
