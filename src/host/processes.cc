// SPDX-License-Identifier: Apache-2.0
#include "host/processes.h"

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/strings.h"
#include "host/proc_parse.h"

namespace headroom::host {

KernelFacts read_kernel_facts(ProcDir& proc, bool this_machine) {
  KernelFacts facts;
  if (this_machine) {  // fixtures are of x86-64 machines: 100 ticks a second, pages of 4096 bytes
    if (const long ticks = ::sysconf(_SC_CLK_TCK); ticks > 0) facts.ns_per_tick = kSecond / ticks;
    if (const long page = ::sysconf(_SC_PAGESIZE); page > 0) facts.page_bytes = page;
  }
  if (const auto text = proc.read("sys/kernel/task_delayacct")) facts.io_delay = trim(*text) != "0";
  facts.cpu_clocks = this_machine;
  return facts;
}

std::string UserNames::name(std::int64_t uid) {
  if (!loaded_) {
    loaded_ = true;
    constexpr std::size_t kLargestPasswd = std::size_t{4} << 20;
    const auto text = read_file(root_ + "/etc/passwd", kLargestPasswd);
    for (const auto line : split(text ? std::string_view(*text) : std::string_view(), '\n')) {
      const auto fields = split(line, ':');
      if (fields.size() < 4) continue;
      if (const auto id = parse_number<std::int64_t>(fields[2])) names_.emplace_back(*id, valid_utf8(fields[0]));
    }
  }
  const auto found = std::find_if(names_.begin(), names_.end(), [&](const auto& entry) { return entry.first == uid; });
  return found == names_.end() ? std::string() : found->second;
}

namespace {

std::optional<std::string> variable(std::string_view environ_text, std::string_view name) {
  const auto value = find_environment(environ_text, name);
  return value ? std::optional(valid_utf8(*value)) : std::nullopt;
}

void read_status(ProcDir& proc, UserNames& users, std::int64_t pid, ProcessFacts& facts) {
  const auto text = proc.read(fmt::format("{}/status", pid).c_str());
  if (!text) return;
  const PidStatus status = parse_pid_status(*text);
  facts.thread = status.tgid && *status.tgid != pid;
  facts.ns_pids = parse_numbers(status.ns_pids);
  facts.process.uid = status.uid;
  if (status.uid) facts.process.user = users.name(*status.uid);
}

// By torchrun and launchers that set the same (Accelerate's, DeepSpeed's), or by Open MPI. Not by Slurm: what srun
// starts may start a process per GPU itself, and each of these has the number of the task.
struct Launcher {
  std::string_view rank, size;
};
constexpr std::array kLaunchers{Launcher{"RANK", "WORLD_SIZE"},
                                Launcher{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}};

// Of a job of one process that is no number of anything.
std::optional<std::int64_t> rank_of(std::string_view environ_text) {
  for (const Launcher& launcher : kLaunchers) {
    const auto rank = find_environment(environ_text, launcher.rank),
               size = find_environment(environ_text, launcher.size);
    if (!rank || !size) continue;
    const auto number = parse_number<std::int64_t>(*rank), all = parse_number<std::int64_t>(*size);
    if (number && all && *all > 1 && *number >= 0 && *number < *all) return number;
  }
  return std::nullopt;
}

void read_environment(ProcDir& proc, std::int64_t pid, ProcessFacts& facts) {
  const auto text = proc.read(fmt::format("{}/environ", pid).c_str());
  facts.environment_denied = !text && text.error() == Absent::kNoPermission;
  facts.environment_empty = text && text->empty();
  if (!text) return;
  facts.process.cuda_visible_devices = variable(*text, "CUDA_VISIBLE_DEVICES");
  facts.process.cuda_device_order = variable(*text, "CUDA_DEVICE_ORDER");
  facts.process.nvidia_visible_devices = variable(*text, "NVIDIA_VISIBLE_DEVICES");
  facts.process.rank = rank_of(*text);
}

}  // namespace

ProcessFacts read_process_facts(ProcDir& proc, const KernelFacts& kernel, UserNames& users, std::int64_t pid,
                                Environment environment) {
  ProcessFacts facts;
  facts.process.pid = pid;
  const auto text = proc.read(fmt::format("{}/stat", pid).c_str());
  if (!text) {
    facts.unreadable = text.error();
    return facts;
  }
  const auto stat = parse_pid_stat(*text);
  if (!stat) {
    facts.unreadable = Absent::kGarbage;
    return facts;
  }
  facts.kernel_thread = stat->kernel_thread();
  facts.process.ppid = stat->ppid;
  facts.process.start = stat->start_ticks * kernel.ns_per_tick;
  facts.process.comm = valid_utf8(stat->comm);
  read_status(proc, users, pid, facts);
  if (const auto cmdline = proc.read(fmt::format("{}/cmdline", pid).c_str()))
    facts.process.cmdline = command_line(*cmdline);
  if (environment == Environment::kRead) read_environment(proc, pid, facts);
  return facts;
}

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

namespace {
// Up to here trying every number (about 2 us for one that is not in use) beats listing all of /proc.
constexpr std::int64_t kProbeLimit = 32;
}  // namespace

bool handed_out_between(std::int64_t pid, std::int64_t after, std::int64_t newest) {
  if (after <= newest) return pid > after && pid <= newest;
  return pid > after || pid <= newest;  // the numbers wrapped
}

std::span<const Candidate> Discovery::fresh(ProcDir& proc) {
  found_.clear();
  for (const std::int64_t pid : again_) probe(proc, pid);
  again_.clear();
  const auto text = proc.read_kept(loadavg_, "loadavg");
  const auto load = text ? parse_loadavg(*text) : std::nullopt;
  const auto newest = load ? load->last_pid : std::nullopt;
  const auto seen = newest ? seen_ : std::nullopt;
  if (newest && seen == newest) return found_;
  seen_ = newest;
  if (seen && *seen < *newest && *newest - *seen <= kProbeLimit) {
    for (std::int64_t pid = *seen + 1; pid <= *newest; ++pid) probe(proc, pid);
    return found_;
  }
  const auto pids = proc.list_numbers(".");
  if (!pids) return found_;
  for (const std::int64_t pid : *pids)
    if (!seen || handed_out_between(pid, *seen, *newest)) probe(proc, pid);
  return found_;
}

void Discovery::look_again_at(std::int64_t pid) {
  if (std::find(again_.begin(), again_.end(), pid) == again_.end()) again_.push_back(pid);
}

void Discovery::rewind_to(std::int64_t pid) {
  if (!seen_ || pid <= *seen_) seen_ = pid - 1;
}

void Discovery::probe(ProcDir& proc, std::int64_t pid) {
  std::array<char, 40> path{};
  fmt::format_to_n(path.data(), path.size() - 1, "{}/stat", pid);
  const auto text = proc.read(path.data());
  const auto stat = text ? parse_pid_stat(*text) : std::nullopt;
  if (!stat || stat->kernel_thread() || stat->state == 'X') return;
  found_.push_back(
      {pid, stat->ppid, stat->session, stat->start_ticks, stat->user_ticks + stat->system_ticks, stat->state == 'Z'});
}

}  // namespace headroom::host
