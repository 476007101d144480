// SPDX-License-Identifier: Apache-2.0
#include "host/process_probe.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <limits>

namespace headroom::host {

namespace {

constexpr Nanos kFullPeriod = 10 * kSecond, kSwitchesPeriod = 5 * kSecond, kThreadsPeriod = 10 * kSecond;
constexpr Nanos kSettled = kSecond;
constexpr std::int64_t kStaggers = 8;
constexpr std::int64_t kLightShare = 50;   // a process is light that uses less than this part of a core: 2 %
constexpr std::int64_t kMostThreads = 64;  // beyond it, looking at every thread costs more than it tells

bool asleep(char state) { return state == 'S' || state == 'D' || state == 'T' || state == 't' || state == 'I'; }

}  // namespace

std::optional<Nanos> process_cpu_clock(std::int64_t pid) {
  // clock_getcpuclockid(3) without its extra system call: the id of the scheduler's clock of a whole process.
  constexpr int kSchedClock = 2;
  const auto id = static_cast<clockid_t>((~static_cast<std::uint32_t>(pid) << 3) | kSchedClock);
  timespec now{};
  if (::clock_gettime(id, &now) != 0) return std::nullopt;
  return static_cast<Nanos>(now.tv_sec) * kSecond + now.tv_nsec;
}

ProcessProbe::ProcessProbe(std::int64_t pid, std::optional<std::int64_t> start_ticks, bool keep_open)
    : pid_(pid), start_ticks_(start_ticks), keep_open_(keep_open) {
  path_prefix_ = fmt::format_to_n(path_.data(), path_.size(), "{}/", pid).size;  // at most 21 of 40 bytes
}

Reading<std::string_view> ProcessProbe::read(ProcDir& proc, Fd& kept, const char* name) {
  return keep_open_ ? proc.read_kept(kept, path(name)) : proc.read(path(name));
}

const char* ProcessProbe::path(std::string_view name) {
  char* end = std::copy(name.begin(), name.end(), path_.data() + path_prefix_);
  *end = '\0';
  return path_.data();
}

// Whether a full look can wait, going by the process's CPU clock alone. If so, the last row still holds where the
// process did not run at all; where it ran, there is no row.
bool ProcessProbe::can_wait(const KernelFacts& kernel, const Pace& pace, Nanos at) {
  if (!kernel.cpu_clocks) return false;
  const auto clock = clock_ = process_cpu_clock(pid_);
  if (clock && looked_clock_ && asleep(state_)) {
    if (*clock == *looked_clock_ && at < next_full_) return true;
    if (clock != tick_clock_) ran_at_ = at;
    tick_clock_ = clock;
    const bool settled = at >= due_after(ran_at_, kSettled);  // it ran, and has stopped: asleep for long, or ended
    const bool light = (*clock - *looked_clock_) * kLightShare < at - looked_at_;
    const Nanos wait = light ? pace.light : pace.busy;
    if (!settled && at < due_after(looked_at_, wait)) {
      count_ = 0;
      return true;
    }
  }
  // Processes found together are looked at in different ticks from then on.
  const Nanos stagger = looked_clock_ ? 0 : (pid_ % kStaggers) * pace.light / kStaggers;
  looked_clock_ = clock;  // before the files: what runs while they are read counts for the next look
  looked_at_ = at - stagger;
  return false;
}

bool ProcessProbe::not_due(Nanos at, Nanos due) {
  if (at >= due) return false;
  owed_ = std::min(owed_, due);
  return true;
}

ProcessProbe::Outcome ProcessProbe::sample(ProcDir& proc, const KernelFacts& kernel, const Pace& pace, Nanos at) {
  slept_anew_ = false;
  if (can_wait(kernel, pace, at)) return Outcome::kAlive;
  count_ = 0;
  owed_ = std::numeric_limits<Nanos>::max();
  const auto over = read_stat(proc, kernel);
  if (over != Outcome::kGone) read_schedstat(proc);  // also of one that has ended, until it is waited for
  if (over) return *over;
  read_wait_channel(proc, at, pace.dear);
  read_io(proc, at, pace.dear);
  read_switches(proc, at);
  read_thread_states(proc, at);
  // The first full look is early and differs by pid, so that a tree that sleeps is not re-read all in one tick.
  const Nanos full = next_full_ == 0 ? at + (5 + pid_ % kStaggers) * kSecond : due_after(at, kFullPeriod);
  next_full_ = std::min(full, owed_);
  return Outcome::kAlive;
}

// The outcome, if the process has ended.
std::optional<ProcessProbe::Outcome> ProcessProbe::read_stat(ProcDir& proc, const KernelFacts& kernel) {
  const auto text = read(proc, stat_fd_, "stat");
  if (!text && text.error() == Absent::kGone) return Outcome::kGone;
  const auto stat = text ? parse_pid_stat(*text) : std::nullopt;
  if (!stat) {
    const Absent why = text ? Absent::kGarbage : text.error();
    for (const Metric metric : {Metric::kCpuUser, Metric::kCpuSystem, Metric::kChildrenCpu, Metric::kProcessState,
                                Metric::kRss, Metric::kThreads})
      put_absent(metric, why);
    state_ = '?';
    return std::nullopt;
  }
  if (start_ticks_ && stat->start_ticks != *start_ticks_)
    return Outcome::kGone;  // the number was given to another process
  state_ = stat->state;
  threads_ = stat->threads;
  comm_size_ = std::min(stat->comm.size(), comm_.size());
  std::memcpy(comm_.data(), stat->comm.data(), comm_size_);
  put(Metric::kCpuUser, stat->user_ticks * kernel.ns_per_tick);
  put(Metric::kCpuSystem, stat->system_ticks * kernel.ns_per_tick);
  put(Metric::kChildrenCpu, stat->children_ticks * kernel.ns_per_tick);
  put(Metric::kProcessState, state_);
  put(Metric::kThreads, threads_);
  put(Metric::kMinorFaults, stat->minor_faults);
  put(Metric::kMajorFaults, stat->major_faults);
  if (kernel.io_delay && stat->io_delay_ticks)
    put(Metric::kIoDelay, *stat->io_delay_ticks * kernel.ns_per_tick);
  else
    put_absent(Metric::kIoDelay, Absent::kNotSupported);
  const bool ended = (state_ == 'Z' || state_ == 'X') && threads_ <= 1;  // else: the main thread ended, others live
  if (ended) {
    if (may_know_ && stat->wait_status) wait_status_ = static_cast<int>(*stat->wait_status);
    return Outcome::kZombie;
  }
  may_know_ = stat->start_code.value_or(0) > 1;
  put(Metric::kRss, stat->rss_pages * kernel.page_bytes);
  return std::nullopt;
}

void ProcessProbe::read_schedstat(ProcDir& proc) {
  const auto text = read(proc, schedstat_fd_, "schedstat");
  const auto stat = text ? parse_schedstat(*text) : std::nullopt;
  timeslices_.reset();
  if (stat) {
    timeslices_ = stat->timeslices;
    put(Metric::kMainCpu, stat->cpu_ns);
    put(Metric::kRunDelay, stat->run_delay_ns);
    return;
  }
  const Absent why = text || text.error() == Absent::kGone ? Absent::kNotSupported : text.error();
  put_absent(Metric::kMainCpu, why);
  put_absent(Metric::kRunDelay, why);
}

// Which of a connection and a terminal it is, the file that the main thread reads from says.
WaitChannel ProcessProbe::what_it_reads(ProcDir& proc) {
  const auto text = proc.read(path("syscall"));
  const auto call = text ? parse_syscall(*text) : std::nullopt;
  if (!call) return WaitChannel::kOther;
  std::array<char, 64> link{};
  fmt::format_to_n(link.data(), link.size() - 1, "{}/fd/{}", pid_, static_cast<int>(call->arguments[0]));
  const auto target = proc.read_link(link.data());
  return target ? channel_of_file(*target) : WaitChannel::kOther;
}

void ProcessProbe::read_wait_channel(ProcDir& proc, Nanos at, Nanos period) {
  if (state_ == 'R') {
    put(Metric::kWaitChannel, static_cast<std::int64_t>(WaitChannel::kRunning));
    wait_timeslices_.reset();
    return;
  }
  const bool same_sleep = timeslices_ && wait_timeslices_ == timeslices_;
  if (!same_sleep) {
    if (not_due(at, next_wait_)) return;
    const auto text = read(proc, wchan_fd_, "wchan");
    next_wait_ = due_after(at, period);
    if (!text) {
      put_absent(Metric::kWaitChannel, text.error() == Absent::kGone ? Absent::kNotSupported : text.error());
      return;
    }
    slept_anew_ = true;
    wait_channel_ = reads_socket_or_terminal(*text) ? what_it_reads(proc) : parse_wchan(*text, state_);
    // It ran between stat and wchan; or it sleeps, and the kernel has not taken it off its queue yet (since Linux 6.12
    // it may do so later), so that nothing would have it looked at again soon; or it is hidden.
    constexpr int kTries = 3;
    if (wait_channel_ != WaitChannel::kUnknown)
      wait_timeslices_ = timeslices_, unknown_waits_ = 0;
    else if (wait_timeslices_.reset(); ++unknown_waits_ <= kTries)
      owed_ = std::min(owed_, next_wait_);
  }
  put(Metric::kWaitChannel, static_cast<std::int64_t>(wait_channel_));
}

void ProcessProbe::read_io(ProcDir& proc, Nanos at, Nanos period) {
  constexpr std::array kMetrics{Metric::kReadBytes, Metric::kWriteBytes, Metric::kReadChars, Metric::kWriteChars};
  if (!io_absent_) {
    if (not_due(at, next_io_)) return;
    next_io_ = due_after(at, period);
    const auto text = read(proc, io_fd_, "io");
    if (text) {
      const PidIo io = parse_pid_io(*text);
      const std::array values{io.read_bytes, io.write_bytes, io.read_chars, io.write_chars};
      for (std::size_t i = 0; i < kMetrics.size(); ++i)
        if (values[i])
          put(kMetrics[i], *values[i]);
        else
          put_absent(kMetrics[i], Absent::kNotSupported);
      return;
    }
    // A kernel without CONFIG_TASK_IO_ACCOUNTING has no such file; neither that nor a refusal changes later.
    io_absent_ = text.error() == Absent::kGone ? Absent::kNotSupported : text.error();
  }
  for (const Metric metric : kMetrics) put_absent(metric, *io_absent_);
}

void ProcessProbe::read_switches(ProcDir& proc, Nanos at) {
  if (not_due(at, next_switches_)) return;
  next_switches_ = due_after(at, kSwitchesPeriod);
  const auto text = proc.read(path("status"));
  const PidStatus status = text ? parse_pid_status(*text) : PidStatus{};
  const Absent why = text ? Absent::kNotSupported : text.error();
  if (status.voluntary_switches)
    put(Metric::kVoluntarySwitches, *status.voluntary_switches);
  else
    put_absent(Metric::kVoluntarySwitches, why);
  if (status.involuntary_switches)
    put(Metric::kInvoluntarySwitches, *status.involuntary_switches);
  else
    put_absent(Metric::kInvoluntarySwitches, why);
}

void ProcessProbe::read_thread_states(ProcDir& proc, Nanos at) {
  if (threads_ <= 1) {
    put(Metric::kThreadsRunning, state_ == 'R' ? 1 : 0);
    return;
  }
  if (threads_ > kMostThreads || not_due(at, next_threads_)) return;
  next_threads_ = due_after(at, kThreadsPeriod);
  const auto tids = proc.list_numbers(path("task"));
  if (!tids) return put_absent(Metric::kThreadsRunning, tids.error());
  std::int64_t running = 0;
  for (const std::int64_t tid : *tids) {
    std::array<char, 64> path{};
    fmt::format_to_n(path.data(), path.size() - 1, "{}/task/{}/stat", pid_, tid);
    const auto text = proc.read(path.data());
    const auto stat = text ? parse_pid_stat(*text) : std::nullopt;
    if (stat && stat->state == 'R') ++running;
  }
  put(Metric::kThreadsRunning, running);
}

std::optional<CpuSet> allowed_cpus(ProcDir& proc, std::int64_t pid) {
  constexpr std::size_t kMost = 1024;  // threads
  constexpr int kMostCpus = 8192;      // the most that a kernel can be built for
  std::array<char, 64> path{};
  fmt::format_to_n(path.data(), path.size() - 1, "{}/task", pid);
  const auto tids = proc.list_numbers(path.data());
  if (!tids || tids->size() > kMost) return std::nullopt;
  std::array<cpu_set_t, kMostCpus / CPU_SETSIZE> one{}, all{};
  for (const std::int64_t tid : *tids)
    if (::sched_getaffinity(static_cast<pid_t>(tid), sizeof(one), one.data()) == 0)  // else it has ended
      CPU_OR_S(sizeof(all), all.data(), all.data(), one.data());
  CpuSet cpus;
  for (std::size_t cpu = 0; cpu < kMostCpus; ++cpu)
    if (CPU_ISSET_S(cpu, sizeof(all), all.data())) {
      cpus.resize(cpu + 1);
      cpus[cpu] = true;
    }
  return cpus.empty() ? std::nullopt : std::optional(std::move(cpus));
}

namespace {

constexpr std::size_t kMostOpenFiles = 512;
constexpr Nanos kOfItsAge = 16;  // a look each sixteenth of it

bool of_a_gpu(std::string_view link, std::string_view virtual_gpus) {
  if (link.starts_with("/dev/dxg") || (!virtual_gpus.empty() && link == virtual_gpus)) return true;
  return link.starts_with("/dev/nv") && !link.starts_with("/dev/nvme") && !link.starts_with("/dev/nvram");
}

}  // namespace

std::optional<bool> has_gpu_file(ProcDir& proc, std::int64_t pid, std::string_view virtual_gpus) {
  std::array<char, 64> path{};
  fmt::format_to_n(path.data(), path.size() - 1, "{}/fd", pid);
  const auto files = proc.list_numbers(path.data());
  if (!files || files->size() > kMostOpenFiles) return std::nullopt;
  for (const std::int64_t file : *files) {
    *fmt::format_to_n(path.data(), path.size() - 1, "{}/fd/{}", pid, file).out = '\0';
    const auto link = proc.read_link(path.data());
    if (link && of_a_gpu(*link, virtual_gpus)) return true;
  }
  return false;
}

bool GpuFiles::due(std::optional<Nanos> clock, Nanos at) {
  if (over_) return false;
  if (none_until_ && clock && clock == clock_) {
    none_until_ = at;
    return false;
  }
  if (at < next_) return false;
  clock_ = clock;
  return true;
}

bool GpuFiles::look(ProcDir& proc, std::int64_t pid, std::string_view virtual_gpus, Nanos least, Nanos at) {
  const auto open = has_gpu_file(proc, pid, virtual_gpus);
  over_ = open.value_or(true);
  if (!over_) none_until_ = at, next_ = due_after(at, std::max(least, (at - start_) / kOfItsAge));
  return open == true;
}

}  // namespace headroom::host
