// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/proc_dir.h"
#include "host/proc_parse.h"
#include "model/entities.h"

namespace headroom::host {

// What the kernel counts in, and what it counts at all; the same for all processes of a machine.
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

}  // namespace headroom::host
