// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/fd.h"
#include "host/proc_dir.h"

namespace headroom::host {

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
