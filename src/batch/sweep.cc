// SPDX-License-Identifier: Apache-2.0
#include "batch/sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <memory>
#include <set>

#include "base/child.h"
#include "base/fd.h"
#include "base/strings.h"

namespace headroom::batch {

namespace {

constexpr Nanos kLook = 50 * kMillisecond;
constexpr Nanos kGiveUp = 10 * kSecond;  // after SIGKILL: what is left then hangs in the kernel
constexpr std::size_t kMostEnvironment = std::size_t{4} << 20;

void sleep_for(Nanos ns) {
  const timespec time{.tv_sec = static_cast<time_t>(ns / kSecond), .tv_nsec = static_cast<long>(ns % kSecond)};
  ::nanosleep(&time, nullptr);
}

struct Stat {
  char state = '?';
  pid_t parent = 0, group = 0;
  Nanos start = 0;  // since boot
  [[nodiscard]] bool lives() const { return state != 'Z' && state != 'X'; }
};
std::optional<Stat> stat_of(pid_t pid) {
  static const Nanos kTick = kSecond / std::max(1L, ::sysconf(_SC_CLK_TCK));
  char path[32], text[4096];
  *fmt::format_to_n(path, sizeof path - 1, "/proc/{}/stat", pid).out = '\0';
  const Fd file(::open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t got = file ? ::read(file.get(), text, sizeof text) : -1;
  if (got <= 0) return std::nullopt;
  std::string_view rest(text, static_cast<std::size_t>(got));
  const auto close = rest.rfind(')');  // the name before it may hold anything
  if (close == std::string_view::npos || close + 2 >= rest.size()) return std::nullopt;
  const auto fields = split(rest.substr(close + 2), ' ');  // state ppid pgrp …
  constexpr std::size_t kStart = 22 - 3;
  if (fields.size() <= kStart || fields[0].empty()) return std::nullopt;
  const auto parent = parse_number<pid_t>(fields[1]), group = parse_number<pid_t>(fields[2]);
  const auto ticks = parse_number<Nanos>(fields[kStart]);
  if (!parent || !group || !ticks) return std::nullopt;
  return Stat{.state = fields[0][0], .parent = *parent, .group = *group, .start = *ticks * kTick};
}

using Box = std::map<pid_t, Stat>;  // every living process

Box all_processes() {
  Box box;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  if (!proc) return box;
  while (const dirent* entry = ::readdir(proc.get()))
    if (const auto pid = parse_number<pid_t>(std::string_view(entry->d_name)))
      if (const auto stat = stat_of(*pid); stat && stat->lives()) box.emplace(*pid, *stat);
  return box;
}

// Whoever sweeps must survive it, and the shell it was typed into as well.
void leave_out_self(Box& box) {
  for (auto here = box.find(::getpid()); here != box.end();) {
    const pid_t parent = here->second.parent;
    box.erase(here);
    here = box.find(parent);
  }
}

template <class T>
bool among(std::span<const T> all, const T& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// What the found ones have started themselves, wherever it went.
void add_descendants(const Box& box, std::vector<Found>& found) {
  std::multimap<pid_t, pid_t> children;
  for (const auto& [pid, stat] : box) children.emplace(stat.parent, pid);
  std::set<pid_t> known;
  for (const Found& process : found) known.insert(process.pid);
  for (std::size_t i = 0; i < found.size(); ++i) {  // grows meanwhile
    const auto [from, to] = children.equal_range(found[i].pid);
    for (auto child = from; child != to; ++child)
      if (known.insert(child->second).second)
        found.push_back({.pid = child->second, .start = box.at(child->second).start, .attempt = found[i].attempt});
  }
}

bool still_lives(const Found& process) {
  const auto stat = stat_of(process.pid);
  return stat && stat->lives() && stat->start == process.start;
}

// Through a descriptor of the process, so that its number cannot become another's between the look and the signal.
void send(const Found& process, int signal) {
  const auto fd = open_pidfd(process.pid);
  if (!still_lives(process)) return;
#ifdef SYS_pidfd_send_signal
  if (fd && ::syscall(SYS_pidfd_send_signal, fd->get(), signal, nullptr, 0) == 0) return;
#endif
  ::kill(process.pid, signal);
}

}  // namespace

std::string marker(std::string_view batch_id, AttemptId attempt) {
  return fmt::format("{}={}.{}", kMarkerName, batch_id, attempt);
}

std::optional<AttemptId> attempt_in(std::string_view environment, std::string_view batch_id) {
  const std::string prefix = fmt::format("{}={}.", kMarkerName, batch_id);
  for (const std::string_view entry : split(environment, '\0'))
    if (entry.starts_with(prefix)) return parse_number<AttemptId>(entry.substr(prefix.size()));
  return std::nullopt;
}

std::optional<AttemptId> attempt_of_process(pid_t pid, std::string_view batch_id) {
  const auto environment = read_file(fmt::format("/proc/{}/environ", pid), kMostEnvironment);
  return environment ? attempt_in(*environment, batch_id) : std::nullopt;
}

std::optional<Nanos> process_start(pid_t pid) {
  const auto stat = stat_of(pid);
  if (!stat) return std::nullopt;
  return stat->start;
}

std::optional<ProcessNow> process_now(pid_t pid) {
  const auto stat = stat_of(pid);
  if (!stat) return std::nullopt;
  return ProcessNow{.start = stat->start, .lives = stat->lives(), .stopped = stat->state == 'T' || stat->state == 't'};
}

std::string process_name(pid_t pid) {
  const auto text = read_file(fmt::format("/proc/{}/comm", pid), 256);
  return text ? std::string(trim(*text)) : "?";
}

std::size_t processes_named(std::string_view name) {
  const Box box = all_processes();
  return static_cast<std::size_t>(
      std::count_if(box.begin(), box.end(), [&](const auto& one) { return process_name(one.first) == name; }));
}

std::vector<Found> find_processes(std::string_view batch_id, std::span<const pid_t> groups,
                                  std::span<const Root> roots) {
  std::vector<Found> found;
  Box box = all_processes();
  leave_out_self(box);
  std::vector<pid_t> led;  // by roots that are still themselves
  for (const Root& root : roots)
    if (const auto here = box.find(root.pid); here != box.end() && here->second.start == root.start)
      led.push_back(root.pid);
  for (const auto& [pid, stat] : box) {
    const auto attempt = attempt_of_process(pid, batch_id);
    if (attempt || among(groups, stat.group) || among<pid_t>(led, stat.group) || among<pid_t>(led, pid))
      found.push_back({.pid = pid, .start = stat.start, .attempt = attempt});
  }
  add_descendants(box, found);
  for (Found& process : found) process.name = process_name(process.pid);
  return found;
}

std::vector<Found> stop_processes(std::string_view batch_id, std::span<const pid_t> groups, Nanos grace,
                                  std::span<const Root> roots) {
  std::vector<Found> first = find_processes(batch_id, groups, roots);
  for (const Found& process : first) {
    send(process, SIGTERM);
    send(process, SIGCONT);  // a stopped one would not hear it
  }
  const Nanos kill_at = boottime_now() + grace, give_up = kill_at + kGiveUp;
  std::vector<Found> left = first;
  while (!left.empty() && boottime_now() < give_up) {
    if (boottime_now() >= kill_at)
      for (const Found& process : left) send(process, SIGKILL);
    sleep_for(kLook);
    // What was found by its parent alone is not found again once the parent is gone.
    std::vector<Found> now = find_processes(batch_id, groups, roots);
    for (const Found& process : left) {
      const bool seen = std::any_of(now.begin(), now.end(), [&](const Found& one) { return one.pid == process.pid; });
      if (!seen && still_lives(process)) now.push_back(process);
    }
    left = std::move(now);
  }
  return first;
}

}  // namespace headroom::batch
