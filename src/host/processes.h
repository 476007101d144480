// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "host/proc_dir.h"
#include "host/proc_parse.h"
#include "model/entities.h"
#include "model/slurm.h"

namespace headroom::host {

// The units of the kernel's counters, and which counters it keeps; the same for all processes of a machine.
struct KernelFacts {
  std::int64_t ns_per_tick = 10'000'000;
  std::int64_t page_bytes = 4096;
  bool io_delay = true;     // kernel.task_delayacct: off by default since 5.14, and then the field always reads 0
  bool cpu_clocks = false;  // the CPU clocks of other processes can be read: only of the machine we run on
};
[[nodiscard]] KernelFacts read_kernel_facts(ProcDir& proc, bool this_machine);

// Names of users from <root>/etc/passwd, read once. Never asks a directory service: that may block for long.
class UserNames {
 public:
  explicit UserNames(std::string root) : root_(std::move(root)) {}
  [[nodiscard]] std::string name(std::int64_t uid);  // "" where it is not in the file

 private:
  std::string root_;
  bool loaded_ = false;
  std::vector<std::pair<std::int64_t, std::string>> names_;
};

// The facts of one process as the sources of a recording have them, without parent source and in_job.
struct ProcessFacts {
  Process process;
  std::vector<std::int64_t> ns_pids;  // its pid in each pid namespace from ours inwards; empty before Linux 4.1
  bool thread = false;                // the number was a thread's, not a process's
  bool kernel_thread = false;
  bool environment_denied = false;
  bool environment_empty = false;    // it execs, or has none
  std::optional<Absent> unreadable;  // why `process` holds no more than the pid
};
enum class Environment { kRead, kSkip };
[[nodiscard]] ProcessFacts read_process_facts(ProcDir& proc, const KernelFacts& kernel, UserNames& users,
                                              std::int64_t pid, Environment environment);

// The topmost process of the job that a process is of: its parents are followed up to what starts jobs and is none (a
// shell, a login, a terminal's multiplexer, a notebook server, an init, a scheduler's or a container's step, Headroom),
// up to another user's, and up to a process that this one descends from, too. Nothing where the process cannot be seen.
// `root` is "" for this machine, else a fixture with root/proc.
[[nodiscard]] std::optional<std::int64_t> root_of_job(std::int64_t pid, const std::string& root = "");

// The nearest slurmstepd above this process; nothing where there is none, or it cannot be seen.
[[nodiscard]] std::optional<Slurmstepd> slurmstepd_above(std::int64_t pid, const std::string& root = "");

// The user who owns the process; nothing where it cannot be seen.
[[nodiscard]] std::optional<std::int64_t> user_of_process(std::int64_t pid, const std::string& root = "");

// A process that may be new to us.
struct Candidate {
  std::int64_t pid = 0;
  std::int64_t ppid = 0;
  std::int64_t session = 0;
  std::int64_t start_ticks = 0;
  std::int64_t ticks = 0;  // of CPU time so far
  bool ended = false;      // a zombie: nobody to record, but while a thread of it lives, its children still name it
};

// Finds the processes that appeared since the last call, at the price of one small read when none did: the kernel hands
// out pids in ascending order, wrapping at the end, and /proc/loadavg tells the newest. Only the numbers between the
// last one seen and the newest are looked at. This holds in the pid namespace of the caller.
class Discovery {
 public:
  // The first call finds everything that runs. The result lives until the next call; it may hold single threads
  // (their numbers are no different) and zombies, and never holds kernel threads.
  [[nodiscard]] std::span<const Candidate> fresh(ProcDir& proc);
  // From the next call on also finds what came after `pid`, `pid` included: cheap where `pid` is young.
  void rewind_to(std::int64_t pid);
  // The next call finds this one, too, if it still runs.
  void look_again_at(std::int64_t pid);
  // The next call finds everything that runs.
  void rewind_all() { seen_.reset(); }

 private:
  void probe(ProcDir& proc, std::int64_t pid);
  Fd loadavg_;
  std::optional<std::int64_t> seen_;  // the newest pid when we last looked
  std::vector<std::int64_t> again_;
  std::vector<Candidate> found_;
};

// Whether `pid` was handed out after `after`, up to and including `newest`.
[[nodiscard]] bool handed_out_between(std::int64_t pid, std::int64_t after, std::int64_t newest);

}  // namespace headroom::host
