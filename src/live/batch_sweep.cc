// SPDX-License-Identifier: Apache-2.0
#include "live/batch_sweep.h"

#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>

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
  pid_t group = 0;
};
std::optional<Stat> stat_of(pid_t pid) {
  const auto text = read_file(fmt::format("/proc/{}/stat", pid), 4096);
  if (!text) return std::nullopt;
  const auto close = text->rfind(')');  // the name before it may hold anything
  if (close == std::string::npos || close + 2 >= text->size()) return std::nullopt;
  const auto fields = split(std::string_view(*text).substr(close + 2), ' ');  // state ppid pgrp …
  if (fields.size() < 3 || fields[0].empty()) return std::nullopt;
  const auto group = parse_number<pid_t>(fields[2]);
  if (!group) return std::nullopt;
  return Stat{.state = fields[0][0], .group = *group};
}

std::vector<pid_t> all_pids() {
  std::vector<pid_t> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  if (!proc) return pids;
  while (const dirent* entry = ::readdir(proc.get()))
    if (const auto pid = parse_number<pid_t>(std::string_view(entry->d_name))) pids.push_back(*pid);
  return pids;
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

std::vector<Found> find_processes(std::string_view batch_id, std::span<const pid_t> groups) {
  std::vector<Found> found;
  const pid_t self = ::getpid();
  for (const pid_t pid : all_pids()) {
    if (pid == self) continue;
    const auto stat = stat_of(pid);
    if (!stat || stat->state == 'Z' || stat->state == 'X') continue;
    const auto attempt = attempt_of_process(pid, batch_id);
    const bool in_group = std::find(groups.begin(), groups.end(), stat->group) != groups.end();
    if (attempt || in_group) found.push_back({.pid = pid, .attempt = attempt});
  }
  return found;
}

std::vector<Found> stop_processes(std::string_view batch_id, std::span<const pid_t> groups, Nanos grace) {
  const std::vector<Found> first = find_processes(batch_id, groups);
  for (const Found& process : first) {
    ::kill(process.pid, SIGTERM);
    ::kill(process.pid, SIGCONT);  // a stopped one would not hear it
  }
  const Nanos kill_at = boottime_now() + grace, give_up = kill_at + kGiveUp;
  std::vector<Found> left = first;
  while (!left.empty() && boottime_now() < give_up) {
    if (boottime_now() >= kill_at)
      for (const Found& process : left) ::kill(process.pid, SIGKILL);
    sleep_for(kLook);
    left = find_processes(batch_id, groups);
  }
  return first;
}

}  // namespace headroom::batch
