// SPDX-License-Identifier: Apache-2.0
#include "batch/executor/local_executor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>

#include "base/fd.h"
#include "base/filesystem.h"
#include "base/ids.h"
#include "base/names.h"
#include "base/strings.h"
#include "batch/messages.h"
#include "batch/outcome.h"
#include "batch/sweep.h"
#include "live/job.h"

namespace headroom::batch {

namespace {

constexpr Nanos kIdentifyWithin = 10 * kMillisecond;  // what ends sooner is not worth the look
constexpr std::size_t kNamesKept = 10'000;
constexpr Nanos kReadingTime = 3 * kSecond;  // of what an attempt has printed

std::string last_part_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

constexpr std::size_t kLongestName = 220;  // of a file 255 bytes: with the attempt's number before it, and ".log"

Launch with_environment(Launch launch, const std::vector<std::string>& more) {
  for (const std::string& variable : more) {
    const std::string name = variable.substr(0, variable.find('='));
    const auto is_set = [&](const auto& own) { return own.first == name; };
    if (std::none_of(launch.environment.begin(), launch.environment.end(), is_set))
      launch.environment.emplace_back(name, variable.substr(std::min(variable.size(), name.size() + 1)));
  }
  return launch;
}

}  // namespace

LocalExecutor::LocalExecutor(Loop& loop, Guardian& guardian, Place& place, LocalExecutorOptions options)
    : loop_(loop),
      place_(place),
      options_(std::move(options)),
      boot_id_(boot_id()),
      processes_(
          loop, guardian, options_.batch_id, options_.mask, options_.grace,
          Processes::Handlers{.on_exit = [this](const ChildExit& exit) { exited(exit); },
                              .on_guardian_gone = [this] { tell(MessageKind::kProblem, words::guardian_gone()); },
                              .on_left_over = [this](const LeftOver& process) { tell_left_over(process); },
                              .on_reaped_by_timer =
                                  [this] {
                                    if (ready_ && !events_.empty()) ready_();
                                  },
                              .on_ended = options_.on_ended}),
      reader_(kReadingTime,
              [this] {
                loop_.post([this] {
                  if (ready_) ready_();
                });
              }),
      oom_kills_(cgroup_.oom_kills()),
      oom_kills_told_(oom_kills_ ? oom_kills_->count : 0) {
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

void LocalExecutor::tell_left_over(const LeftOver& process) {
  const auto name = names_.find(process.attempt);
  const std::string owner = name == names_.end() ? "" : name->second;
  tell(process.stopped ? MessageKind::kFact : MessageKind::kProblem,
       process.stopped ? words::left_over(process.pid, process.name, owner)
                       : words::not_ours(process.pid, process.name));
}

void LocalExecutor::describe(const TaskSpec& task, Attempt& attempt) const {
  attempt.boot_id = boot_id_;
  attempt.log_path = fmt::format("{}/logs/{}-{}.log", place_.folder, attempt.id, file_name_of(task.name, kLongestName));
}

void LocalExecutor::start(std::vector<Launch> launches) {
  for (const Launch& launch : launches) {
    spare_.give();
    start_one(launch);
    spare_.take();
  }
  if (!fresh_.empty() && identify_timer_ == 0)
    identify_timer_ = loop_.after(kIdentifyWithin, [this] { identify_fresh(); });
}

void LocalExecutor::start_one(const Launch& launch) {
  const auto cannot = [&](const Error& error, bool passes) {
    events_.emplace_back(AttemptNotStarted{.attempt = launch.attempt, .reason = error.what, .passes = passes});
  };
  const std::string name = last_part_of(launch.log_path);
  const auto log = open_log(place_, name);
  if (!log) return cannot(log.error(), true);
  const Nanos before = boottime_now();
  const auto pid = processes_.start(with_environment(launch, options_.environment), *log);
  if (!pid) return cannot(pid.error(), pid.error().code == Errc::kNoSpace || pid.error().code == Errc::kBusy);
  names_.emplace(launch.attempt, name);
  if (names_.size() > kNamesKept) names_.erase(names_.begin());
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
  for (OutputRead& read : reader_.take()) events_.emplace_back(std::move(read));
  return std::exchange(events_, {});
}

void LocalExecutor::exited(const ChildExit& exit) {
  AttemptExited event{.attempt = exit.attempt,
                      .status = exit.status,
                      .at = exit.at,
                      .cpu_time = exit.cpu_time,
                      .peak_host_bytes = exit.peak_host_bytes};
  if (exit.status.as_code() != 0 && !exit.told_to_stop) count_oom_kills(exit.status, event);
  events_.emplace_back(event);
}

void LocalExecutor::look_for_oom_kills() {
  const auto now = cgroup_.oom_kills();
  if (now && oom_kills_ && now->of_machine == oom_kills_->of_machine && now->count > oom_kills_->count)
    oom_killed_at_ = boottime_now();
  oom_kills_ = now;
}

// Whom the kernel killed it does not say: whoever was killed, and not by us; or a process of a task that says so.
void LocalExecutor::count_oom_kills(const ExitStatus& status, AttemptExited& event) {
  look_for_oom_kills();
  if (!oom_kills_) return;
  event.oom_killed_at = oom_killed_at_;
  event.oom_kills_of_machine = oom_kills_->of_machine;
  if (!killed_at_once(status)) return;
  event.oom_kills = std::max<std::int64_t>(0, oom_kills_->count - oom_kills_told_);
  oom_kills_told_ = std::max(oom_kills_->count, oom_kills_told_);
}

void LocalExecutor::look_for_orphans() {
  orphan_timer_ = loop_.after(kSecond, [this] { look_for_orphans(); });
  look_for_oom_kills();
  processes_.look_for_orphans();
  if (ready_ && !events_.empty()) ready_();
}

Room LocalExecutor::room() const {
  if (is_removed(place_.directory.get())) return Room::kNoFolder;
  struct statvfs info {};
  if (::fstatvfs(place_.directory.get(), &info) != 0) return Room::kEnough;
  if (info.f_bavail * info.f_frsize < static_cast<std::uint64_t>(kRoomForLogs)) return Room::kTooFewBytes;
  const bool counts_files = info.f_files > 0;  // btrfs and others make them as they are needed
  return counts_files && info.f_favail < static_cast<std::uint64_t>(kFilesForLogs) ? Room::kTooFewFiles : Room::kEnough;
}

std::string LocalExecutor::readable_log(const Attempt& attempt) const {
  return fmt::format("/proc/self/fd/{}/{}", place_.logs.get(), last_part_of(attempt.log_path));
}

bool LocalExecutor::has_printed(const Attempt& attempt) const {
  struct stat info {};
  const std::string name = last_part_of(attempt.log_path);
  return ::fstatat(place_.logs.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode) &&
         info.st_size > 0;
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
