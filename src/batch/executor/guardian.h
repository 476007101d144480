// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "base/time.h"

namespace headroom::batch {

// A small process that outlives this one: when this one dies, in whatever way, it stops the batch's tasks, gracefully
// first. It sleeps on a pipe and costs nothing; which groups run it reads from shared memory. It keeps `lock_fd` open
// until it has finished, so that the batch's folder stays locked while its tasks are still being stopped.
class Guardian {
 public:
  // Before this process has threads: what a fork takes along of them cannot be used.
  [[nodiscard]] static Result<Guardian> start(Nanos grace, int lock_fd);
  Guardian(Guardian&& other) noexcept;
  Guardian& operator=(Guardian&&) = delete;
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;
  ~Guardian();  // tells it to leave: nothing is stopped

  [[nodiscard]] pid_t pid() const { return pid_; }
  void set_batch(std::string_view batch_id);
  void add_group(pid_t group);
  void remove_group(pid_t group);
  void ended() { pid_ = -1; }  // somebody killed it, and it was reaped

 private:
  struct Shared;
  Guardian() = default;
  [[noreturn]] static void keep_watch(int pipe_fd, int lock_fd, const Shared& shared, Nanos grace);

  pid_t pid_ = -1;
  Fd alive_;  // the write end: closed by the kernel when this process dies
  Shared* shared_ = nullptr;
};

}  // namespace headroom::batch
