// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/time.h"

namespace headroom {

// How a process ended: with a code, or by a signal.
struct ExitStatus {
  int code = 0;
  int signal = 0;  // 0: it ended by itself

  [[nodiscard]] int as_code() const { return signal != 0 ? 128 + signal : code; }  // as a shell says it
  bool operator==(const ExitStatus&) const = default;
};
[[nodiscard]] ExitStatus exit_status_of(int wait_status);  // as waitpid() gives it

// Exit codes for a command that could not be started, as shells and env(1) have them.
inline constexpr int kExitNotExecutable = 126, kExitNotFound = 127;

// What becomes of a child whose owner is dropped before it ended.
enum class OnDrop { kKill, kLeave };

struct ChildOptions {
  std::vector<std::string> argv;     // argv[0] is looked up in PATH unless it has a slash
  std::vector<std::string> set_env;  // "NAME=value", added to or replacing what this process has
  std::string cwd;                   // "": this process's
  int standard_in = -1, standard_out = -1, standard_error = -1;  // -1: inherited
  bool own_group = false;               // a process group of its own; else that of this process
  std::optional<sigset_t> signal_mask;  // absent: that of the calling thread
  OnDrop on_drop = OnDrop::kKill;
};

// A child process. The one that spawned it reaps it: either through this class, or by telling it what waitpid() said.
class Child {
 public:
  // kNotFound: no such program. kNoPermission: not executable. kBusy: the box cannot now, it may later. Else: it
  // cannot.
  [[nodiscard]] static Result<Child> spawn(const ChildOptions& options);

  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const std::optional<ExitStatus>& status() const { return status_; }

  [[nodiscard]] std::optional<ExitStatus> try_wait();  // reaps it if it has ended
  ExitStatus wait();
  void ended(ExitStatus status) { status_ = status; }  // reaped elsewhere
  void kill(int signal) const;                         // its group, if it has its own; nothing once it was reaped

 private:
  Child(pid_t pid, const ChildOptions& options) : pid_(pid), own_group_(options.own_group), on_drop_(options.on_drop) {}

  pid_t pid_ = -1;
  bool own_group_ = false;
  OnDrop on_drop_ = OnDrop::kKill;
  std::optional<ExitStatus> status_;
};

// A descriptor that becomes readable when the process ends; not only for children. kUnsupported on old kernels.
[[nodiscard]] Result<Fd> open_pidfd(pid_t pid);

// The file that would be run for `program`: looked up in PATH unless it has a slash.
[[nodiscard]] Result<std::string> find_program(const std::string& program);

}  // namespace headroom
