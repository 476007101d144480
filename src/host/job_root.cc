// SPDX-License-Identifier: Apache-2.0
#include "host/job_root.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "host/proc_parse.h"

namespace headroom::host {

namespace {

constexpr std::size_t kMostBytes = 4096, kDeepest = 100;

constexpr std::array<std::string_view, 36> kStartsJobs{"headroom",   "sh",      "bash",
                                                       "dash",       "zsh",     "fish",
                                                       "ksh",        "csh",     "tcsh",
                                                       "tmux",       "screen",  "SCREEN",
                                                       "sshd",       "login",   "su",
                                                       "sudo",       "cron",    "crond",
                                                       "atd",        "systemd", "init",
                                                       "tini",       "node",    "dumb-init",
                                                       "conmon",     "runc",    "docker-init",
                                                       "slurmstepd", "srun",    "supervisord",
                                                       "catatonit",  "code",    "gnome-terminal-",
                                                       "konsole",    "xterm",   "containerd-shim"};

bool starts_jobs(std::string_view comm) {
  return comm.starts_with("jupyter") || comm.starts_with("tmux:") ||
         std::find(kStartsJobs.begin(), kStartsJobs.end(), comm) != kStartsJobs.end();
}

struct Seen {
  std::int64_t pid = 0, parent = 0;
  std::string comm;
};

std::optional<Seen> look_at(std::int64_t pid, const std::string& root) {
  const auto text = read_file(fmt::format("{}/proc/{}/stat", root, pid), kMostBytes);
  const auto stat = text ? parse_pid_stat(*text) : std::nullopt;
  if (!stat) return std::nullopt;
  return Seen{stat->pid, stat->ppid, std::string(stat->comm)};
}

std::vector<std::int64_t> parents_of(std::int64_t pid, const std::string& root) {
  std::vector<std::int64_t> parents;
  for (auto seen = look_at(pid, root); seen && parents.size() < kDeepest; seen = look_at(seen->parent, root))
    parents.push_back(seen->parent);
  return parents;
}

}  // namespace

std::optional<Slurmstepd> slurmstepd_above(std::int64_t pid, const std::string& root) {
  for (const std::int64_t parent : parents_of(pid, root)) {
    const auto title = read_file(fmt::format("{}/proc/{}/cmdline", root, parent), kMostBytes);
    if (auto found = title ? slurmstepd_of(*title) : std::nullopt) return found;
  }
  return std::nullopt;
}

std::optional<std::int64_t> user_of_process(std::int64_t pid, const std::string& root) {
  const auto text = read_file(fmt::format("{}/proc/{}/status", root, pid), kMostBytes);
  return text ? parse_pid_status(*text).uid : std::nullopt;
}

std::optional<std::int64_t> root_of_job(std::int64_t pid, const std::string& root) {
  const auto process = look_at(pid, root);
  if (!process) return std::nullopt;
  const auto user = user_of_process(pid, root);
  const std::vector<std::int64_t> ours = parents_of(::getpid(), root);
  std::int64_t top = pid;
  auto parent = look_at(process->parent, root);
  for (std::size_t depth = 0; parent && depth < kDeepest; parent = look_at(parent->parent, root), ++depth) {
    const bool above_us = std::find(ours.begin(), ours.end(), parent->pid) != ours.end();
    if (above_us || parent->pid == 1 || starts_jobs(parent->comm) || user_of_process(parent->pid, root) != user) break;
    top = parent->pid;
  }
  return top;
}

}  // namespace headroom::host
