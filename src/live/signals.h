// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>
#include <csignal>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace headroom {

struct Signal {
  int number = 0;
  bool from_kernel = false;  // a terminal or a timer; else a process sent it
  pid_t sender = 0;          // 0 from the kernel or from outside this PID namespace
};

// Signals as data: blocked in the calling thread and in threads that it starts afterwards, read from a descriptor.
// Dispositions stay what they were, so what was ignored (nohup) stays ignored, here and in children.
class Signals {
 public:
  // SIGPIPE and SIGXFSZ are blocked as well: a closed pipe or a file limit is then an error of write().
  [[nodiscard]] static Result<Signals> block(std::initializer_list<int> numbers);

  Signals(Signals&&) = default;
  Signals& operator=(Signals&&) = default;

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const sigset_t& mask_before() const { return mask_before_; }
  [[nodiscard]] std::vector<Signal> drain();
  // Drops what is pending and unblocks: from now on signals act on this process as they do on any other.
  void release();

 private:
  Signals() = default;
  Fd fd_;
  sigset_t mask_before_{};
};

// Whether Slurm sent it to every process of a step, the job of this process among them: what the slurmstepd of a step
// sends. To a batch script it sends for `--signal=B:` and `scancel --batch` to the script's own process alone, at the
// end to all, and nothing tells the one from the other; nor is anything known of a slurmstepd that /proc hides
// (hidepid). `root` is "" for this machine, else a fixture with root/proc.
[[nodiscard]] bool sent_to_whole_step(const Signal& signal, const std::string& root = "");

}  // namespace headroom
