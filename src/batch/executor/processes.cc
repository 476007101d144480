// SPDX-License-Identifier: Apache-2.0
#include "batch/executor/processes.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/strings.h"
#include "batch/sweep.h"

namespace headroom::batch {

namespace {

constexpr Nanos kLookAtLingering = 100 * kMillisecond;
constexpr Nanos kWorthALook = 100 * kMillisecond;  // what lives for less tells little, and may be one of thousands
constexpr Nanos kClockTick = 10 * kMillisecond;    // start times of processes are as coarse as this

Nanos nanos_of(const timeval& time) { return time.tv_sec * kSecond + time.tv_usec * kMicrosecond; }

std::vector<pid_t> children_of_this_thread() {
  std::vector<pid_t> pids;
  const auto text = read_file(fmt::format("/proc/self/task/{}/children", ::gettid()), std::size_t{1} << 22);
  if (!text) return pids;
  for (const auto word : split(*text, ' '))
    if (const auto pid = parse_number<pid_t>(word)) pids.push_back(*pid);
  return pids;
}

bool group_lives(pid_t group) { return ::kill(-group, 0) == 0 || errno == EPERM; }

}  // namespace

Processes::Processes(Loop& loop, Guardian& guardian, std::string batch_id, sigset_t mask, Nanos grace,
                     Handlers handlers)
    : loop_(loop),
      guardian_(guardian),
      batch_id_(std::move(batch_id)),
      mask_(mask),
      grace_(grace),
      handlers_(std::move(handlers)),
      null_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {
  // `sh -c 'tensorboard & exec headroom batch …'` leaves children; the first process of a container gets everybody's.
  for (const pid_t pid : children_of_this_thread())
    if (pid != guardian_.pid()) not_ours_.insert(pid);
  others_leave_orphans_ = !not_ours_.empty() || ::getpid() == 1;
}

Processes::~Processes() {
  loop_.cancel(lingering_timer_);
  for (auto& [pid, running] : by_pid_) {
    loop_.cancel(running.kill_timer);
    running.child.kill(SIGKILL);
    running.child.wait();
  }
}

Result<pid_t> Processes::start(const Launch& launch, const Fd& log) {
  ChildOptions options{.argv = launch.argv,
                       .set_env = {marker(batch_id_, launch.attempt)},
                       .cwd = launch.working_directory,
                       .standard_in = null_.get(),
                       .standard_out = log.get(),
                       .standard_error = log.get(),
                       .own_group = true,
                       .signal_mask = mask_,
                       .on_drop = OnDrop::kLeave};  // what is left of its group gets its grace time
  for (const auto& [name, value] : launch.environment) options.set_env.push_back(fmt::format("{}={}", name, value));
  const Nanos before = boottime_now();
  HR_TRY(Child child, open_files_.as_before([&] { return Child::spawn(options); }));
  const pid_t pid = child.pid();
  guardian_.add_group(pid);
  by_pid_.emplace(pid, Running{.attempt = launch.attempt, .child = std::move(child), .start = before});
  by_attempt_[launch.attempt] = pid;
  return pid;
}

void Processes::stop(AttemptId attempt, bool force) {
  const auto found = by_attempt_.find(attempt);
  if (found == by_attempt_.end()) return;
  Running& running = by_pid_.at(found->second);
  running.told_to_stop = true;
  if (force) {
    running.child.kill(SIGKILL);
    kill_marked(attempt);
    return;
  }
  running.child.kill(SIGTERM);
  running.child.kill(SIGCONT);  // a stopped process would not hear it
  if (running.kill_timer == 0) running.kill_timer = loop_.after(grace_, [this, attempt] { stop(attempt, true); });
}

void Processes::kill_marked(AttemptId attempt) const {
  for (const Found& process : find_processes(batch_id_, {}))
    if (process.attempt == attempt) ::kill(process.pid, SIGKILL);
}

// One that has ended; those that were started are told of first. -1: whichever it is.
pid_t Processes::next_to_reap() const {
  siginfo_t info{};
  if (!handlers_.on_ended || ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WNOTHREAD) != 0 ||
      info.si_pid == 0)
    return -1;
  const auto found = by_pid_.find(info.si_pid);
  if (found != by_pid_.end() && boottime_now() - found->second.start >= kWorthALook) handlers_.on_ended(info.si_pid);
  return info.si_pid;
}

void Processes::reap() {
  for (;;) {
    int status = 0;
    rusage usage{};
    const pid_t next = next_to_reap(), pid = ::wait4(next, &status, WNOHANG | __WNOTHREAD, &usage);
    if (pid < 0 && (errno == EINTR || next > 0)) continue;  // somebody else may have been sooner with that one
    if (pid <= 0) return;
    ended(pid, status, nanos_of(usage.ru_utime) + nanos_of(usage.ru_stime), std::int64_t{usage.ru_maxrss} * 1024);
  }
}

void Processes::ended(pid_t pid, int wait_status, Nanos cpu, std::int64_t peak) {
  const ExitStatus status = exit_status_of(wait_status);
  if (pid == guardian_.pid()) {
    guardian_.ended();
    return handlers_.on_guardian_gone();
  }
  orphans_.erase(pid);
  not_ours_.erase(pid);
  const auto found = by_pid_.find(pid);
  if (found == by_pid_.end()) return;
  auto node = by_pid_.extract(found);
  Running& running = node.mapped();
  loop_.cancel(running.kill_timer);
  const AttemptId attempt = running.attempt;
  by_attempt_.erase(attempt);
  if (::kill(-pid, SIGTERM) == 0) {  // before Child is dropped, which would kill what is left of the group
    lingering_[pid] = {.attempt = attempt, .kill_at = boottime_now() + grace_};
    if (lingering_timer_ == 0) lingering_timer_ = loop_.after(kLookAtLingering, [this] { watch_lingering(); });
  } else {
    guardian_.remove_group(pid);
  }
  running.child.ended(status);
  handlers_.on_exit({.attempt = attempt,
                     .status = status,
                     .at = boottime_now(),
                     .cpu_time = cpu,
                     .peak_host_bytes = peak,
                     .told_to_stop = running.told_to_stop});
}

void Processes::watch_lingering() {
  lingering_timer_ = 0;
  reap();
  handlers_.on_reaped_by_timer();
  const Nanos now = boottime_now();
  for (auto group = lingering_.begin(); group != lingering_.end();) {
    if (!group_lives(group->first)) {
      guardian_.remove_group(group->first);
      group = lingering_.erase(group);
      continue;
    }
    if (now >= group->second.kill_at) ::kill(-group->first, SIGKILL);
    ++group;
  }
  if (!lingering_.empty() && lingering_timer_ == 0)
    lingering_timer_ = loop_.after(kLookAtLingering, [this] { watch_lingering(); });
}

// Whose this child of ours is, that nobody started. Without a marker that is not known; but what is older than
// everything that runs belongs to nothing that runs.
Processes::Orphan Processes::judge(pid_t orphan) const {
  using Whose = Orphan::Whose;
  if (const auto attempt = attempt_of_process(orphan, batch_id_))
    return {.whose = by_attempt_.contains(*attempt) ? Whose::kRunning : Whose::kEnded, .attempt = *attempt};
  const auto start = process_start(orphan);
  if (!start || ::getpgid(orphan) == ::getpgrp()) return {};
  if (others_leave_orphans_) return {.whose = Whose::kUnknown};
  for (const auto& [pid, running] : by_pid_)
    if (*start + kClockTick >= running.start) return {};
  return {.whose = Whose::kEnded};
}

// A child stays its parent's until that has reaped it, so its number is its own for as long as it is among these.
void Processes::look_for_orphans() {
  const Nanos now = boottime_now();
  for (const auto& [pid, kill_at] : orphans_)
    if (now >= kill_at) ::kill(pid, SIGKILL);
  const auto children = children_of_this_thread();
  if (children.size() <= by_pid_.size() + not_ours_.size() + 1) return;  // and the guardian
  for (const pid_t pid : children) {
    if (by_pid_.contains(pid) || orphans_.contains(pid) || not_ours_.contains(pid) || pid == guardian_.pid()) continue;
    const Orphan orphan = judge(pid);
    if (orphan.whose == Orphan::Whose::kRunning) continue;
    const bool stop = orphan.whose == Orphan::Whose::kEnded;
    handlers_.on_left_over({.attempt = orphan.attempt, .pid = pid, .name = process_name(pid), .stopped = stop});
    if (!stop) {
      not_ours_.insert(pid);
      continue;
    }
    ::kill(pid, SIGTERM);
    ::kill(pid, SIGCONT);
    orphans_[pid] = now + grace_;
  }
}

void Processes::stop_everything_left() {
  constexpr int kRounds = 3;  // what cleaned its environment and left its group shows when its parent is gone
  for (int round = 0; round < kRounds; ++round) {
    reap();
    std::vector<pid_t> groups;
    for (const auto& [group, lingering] : lingering_)
      if (group_lives(group)) groups.push_back(group);
    for (const pid_t pid : children_of_this_thread())
      if (const pid_t group = ::getpgid(pid); pid != guardian_.pid() && !not_ours_.contains(pid) && group > 0 &&
                                              group != ::getpgid(0) && judge(pid).whose != Orphan::Whose::kUnknown)
        groups.push_back(group);
    if (groups.empty()) break;
    stop_processes(batch_id_, groups, grace_);
  }
  reap();
}

std::optional<AttemptId> Processes::attempt_of(pid_t pid) const {
  const auto found = by_pid_.find(pid);
  if (found == by_pid_.end()) return std::nullopt;
  return found->second.attempt;
}

}  // namespace headroom::batch
