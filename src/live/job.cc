// SPDX-License-Identifier: Apache-2.0
#include "live/job.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <optional>
#include <string_view>
#include <thread>

#include "base/strings.h"
#include "live/signals.h"

namespace headroom {

namespace {

// `fg` continues the whole group in one call; only if the job is still stopped a moment later was Headroom meant alone.
constexpr Nanos kContinueDelay = 50 * kMillisecond;
constexpr int kWaitFlags = WEXITED | WSTOPPED | WCONTINUED | WNOHANG | __WNOTHREAD;

struct Stat {
  char state = '?';
  pid_t parent = 0;
};

// "pid (comm) state ppid …"; comm may hold anything, so the last ')' ends it.
std::optional<Stat> stat_of(pid_t pid) {
  const auto text = read_file(fmt::format("/proc/{}/stat", pid), 4096);
  if (!text) return std::nullopt;
  const auto close = text->rfind(')');
  if (close == std::string::npos) return std::nullopt;
  const auto fields = split(std::string_view(*text).substr(close + 1), ' ');
  if (fields.size() < 3 || fields[1].empty()) return std::nullopt;
  const auto parent = parse_number<pid_t>(fields[2]);
  if (!parent) return std::nullopt;
  return Stat{.state = fields[1][0], .parent = *parent};
}

// Children of the calling thread: the job was spawned by it, and it is the one that orphans are given to.
std::vector<pid_t> own_children() {
  std::vector<pid_t> result;
  const auto text = read_file(fmt::format("/proc/self/task/{}/children", ::gettid()), std::size_t{1} << 20);
  if (!text) return result;  // a kernel without this file
  for (const auto word : split(*text, ' '))
    if (const auto pid = parse_number<pid_t>(word)) result.push_back(*pid);
  return result;
}

// Waits for children of this thread only: a driver library may start a helper on another thread and wait for it itself.
bool next_change(siginfo_t& info, int& flags) {
  info = {};
  if (::waitid(P_ALL, 0, &info, flags) == 0) return info.si_pid != 0;
  if (errno != EINVAL || (flags & __WNOTHREAD) == 0) return false;
  flags &= ~__WNOTHREAD;  // before Linux 4.7
  return ::waitid(P_ALL, 0, &info, flags) == 0 && info.si_pid != 0;
}

bool stops(int signal) { return signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU; }

}  // namespace

bool in_tree_of(pid_t pid, pid_t root) {
  constexpr int kDeepest = 1000;  // a tree that changes while it is climbed must not be climbed for ever
  for (int i = 0; i < kDeepest && pid > 1; ++i) {
    if (pid == root) return true;
    const auto stat = stat_of(pid);
    if (!stat) return false;
    pid = stat->parent;
  }
  return false;
}

std::vector<pid_t> those_that_stay(std::vector<pid_t> pids, Nanos patience) {
  constexpr Nanos kBetweenLooks = 5 * kMillisecond;
  const auto ended = [](pid_t pid) {
    const auto stat = stat_of(pid);
    return !stat || stat->state == 'Z' || stat->state == 'X';
  };
  for (const Nanos until = boottime_now() + patience;;) {
    std::erase_if(pids, ended);
    if (pids.empty() || boottime_now() >= until) return pids;
    std::this_thread::sleep_for(std::chrono::nanoseconds(kBetweenLooks));
  }
}

std::vector<pid_t> ForegroundJob::adopt_orphans() {
  std::vector<pid_t> inherited = own_children();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  return inherited;
}

Result<std::unique_ptr<ForegroundJob>> ForegroundJob::follow(Loop& loop, Signals& signals, Child spawned,
                                                             Handlers handlers, std::vector<pid_t> inherited) {
  std::unique_ptr<ForegroundJob> job(
      new ForegroundJob(loop, signals, std::move(spawned), std::move(handlers), std::move(inherited)));
  ForegroundJob* self = job.get();
  HR_TRYV(loop.watch(signals.fd(), [self] { self->handle_signals(); }));
  return job;
}

ForegroundJob::ForegroundJob(Loop& loop, Signals& signals, Child spawned, Handlers handlers,
                             std::vector<pid_t> inherited)
    : loop_(loop),
      signals_(signals),
      child_(std::move(spawned)),
      handlers_(std::move(handlers)),
      inherited_(std::move(inherited)),
      wait_flags_(kWaitFlags) {}

ForegroundJob::~ForegroundJob() {
  loop_.forget(signals_.fd());
  loop_.cancel(continue_timer_);
}

void ForegroundJob::handle_signals() {
  for (const Signal& signal : signals_.drain()) handle(signal);
  reap();  // also when SIGCHLD was merged with an earlier one
  if (stop_signal_ != 0 && job_stopped_) stop_with_job();
}

void ForegroundJob::handle(const Signal& signal) {
  if (signal.number == SIGCHLD) return;
  if (signal.number == SIGCONT) return continue_job_soon();
  if (stops(signal.number)) stop_signal_ = signal.number;
  // When a terminal hangs up, the kernel tells the session's leader alone, and the others when that one has exited.
  const bool told_alone = signal.number == SIGHUP && ::getsid(0) == ::getpid();
  if (!signal.from_kernel || told_alone) return forward(signal);
  if (!stops(signal.number)) terminal_signal_ = signal.number;
}

void ForegroundJob::forward(const Signal& signal) {
  if (signal.sender > 0 && in_tree_of(signal.sender, child_.pid())) return;
  if (sent_to_whole_step(signal)) return;
  child_.kill(signal.number);
}

void ForegroundJob::reap() {
  siginfo_t info{};
  while (!child_.status() && next_change(info, wait_flags_)) {
    const bool job = info.si_pid == child_.pid();
    if (info.si_code == CLD_STOPPED || info.si_code == CLD_CONTINUED) {
      if (!job) continue;
      job_stopped_ = info.si_code == CLD_STOPPED;
      if (!job_stopped_) stop_signal_ = 0;
    } else {
      reaped(info);
    }
  }
}

void ForegroundJob::reaped(const siginfo_t& info) {
  const bool by_signal = info.si_code != CLD_EXITED;
  const ExitStatus status{.code = by_signal ? 0 : info.si_status, .signal = by_signal ? info.si_status : 0};
  handlers_.on_reaped(info.si_pid, status);
  if (info.si_pid == child_.pid()) end(status);
}

void ForegroundJob::end(ExitStatus status) {
  JobEnd end{.status = status, .at = boottime_now()};
  child_.ended(status);
  siginfo_t info{};
  while (next_change(info, wait_flags_))
    if (info.si_code != CLD_STOPPED && info.si_code != CLD_CONTINUED) reaped(info);
  end.left_over = own_children();
  std::erase_if(end.left_over,
                [this](pid_t pid) { return std::find(inherited_.begin(), inherited_.end(), pid) != inherited_.end(); });
  end.died_of_terminal = status.signal != 0 && status.signal == terminal_signal_;
  stop_signal_ = 0;
  loop_.forget(signals_.fd());
  handlers_.on_end(end);
}

// Stops this process the way the job was stopped; returns when it was continued.
void ForegroundJob::stop_with_job() {
  const int number = std::exchange(stop_signal_, 0);
  const Nanos from = boottime_now();
  sigset_t only, before;
  ::sigemptyset(&only);
  ::sigaddset(&only, number);
  ::raise(number);
  ::pthread_sigmask(SIG_UNBLOCK, &only, &before);  // stops here, unless nobody could continue it (an orphaned group)
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  handlers_.on_stopped(from, boottime_now(), number);
  continue_job_soon();
}

void ForegroundJob::continue_job_soon() {
  if (continue_timer_ != 0) return;
  continue_timer_ = loop_.after(kContinueDelay, [this] {
    continue_timer_ = 0;
    reap();
    if (child_.status() || !job_stopped_) return;
    const auto stat = stat_of(child_.pid());
    if (stat && stat->state == 'T') child_.kill(SIGCONT);
  });
}

}  // namespace headroom
