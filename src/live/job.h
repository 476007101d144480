// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/child.h"
#include "live/loop.h"
#include "live/signals.h"

namespace headroom {

struct JobEnd {
  ExitStatus status;
  Nanos at = 0;
  bool died_of_terminal = false;  // of a signal that the terminal sent to Headroom as well
  std::vector<pid_t> left_over;   // children of the job that run on; grandchildren are not counted
};

// The watched job: a child in Headroom's own process group, so the terminal reaches it as if Headroom were not there.
//   sent by the terminal to the group   the job has it already: Headroom only looks on
//   sent to Headroom alone              forwarded once. A sender inside the job's tree is taken to mean the whole group
//                                       (`kill 0`), which the job is in. (`kill -- -GROUP` from outside cannot be told
//                                       from a signal to Headroom alone; the job then gets it twice.)
//   sent by Slurm to a whole step       the job has it already (live/signals.h)
//   the job was stopped (Ctrl-Z)        Headroom stops as well, so that the shell gets its prompt; `fg` and `bg`
//   continue both
// Headroom is made a subreaper: what the job orphans stays in its tree and is reaped.
class ForegroundJob {
 public:
  // The signals to hand to Signals::block before the job is spawned.
  static constexpr std::initializer_list<int> kSignals{SIGHUP, SIGINT,  SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM,
                                                       SIGURG, SIGXCPU, SIGCHLD, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU};
  struct Handlers {
    std::function<void(const JobEnd&)> on_end;                         // must not destroy the ForegroundJob
    std::function<void(Nanos from, Nanos to, int signal)> on_stopped;  // this process was stopped with the job
    std::function<void(pid_t pid, ExitStatus status)> on_reaped;       // the job itself, and orphans of its tree
  };

  // Makes this process the subreaper of what it spawns from now on; returns the children that it has already, of what
  // it was before an exec.
  static std::vector<pid_t> adopt_orphans();

  // `spawned` is the child, spawned by the thread that runs `loop`. `loop` and `signals` must outlive this, and
  // `on_end` must not destroy it.
  [[nodiscard]] static Result<std::unique_ptr<ForegroundJob>> follow(Loop& loop, Signals& signals, Child spawned,
                                                                     Handlers handlers,
                                                                     std::vector<pid_t> inherited = {});
  ~ForegroundJob();
  ForegroundJob(const ForegroundJob&) = delete;
  ForegroundJob& operator=(const ForegroundJob&) = delete;

  [[nodiscard]] pid_t pid() const { return child_.pid(); }
  void kill(int signal) const { child_.kill(signal); }

 private:
  ForegroundJob(Loop& loop, Signals& signals, Child spawned, Handlers handlers, std::vector<pid_t> inherited);
  void handle_signals();
  void handle(const Signal& signal);
  void forward(const Signal& signal);
  void reap();
  void reaped(const siginfo_t& info);
  void end(ExitStatus status);
  void stop_with_job();
  void continue_job_soon();

  Loop& loop_;
  Signals& signals_;
  Child child_;
  Handlers handlers_;
  std::vector<pid_t> inherited_;  // children from before the job
  int terminal_signal_ = 0;       // the last one that would have ended a program without handlers
  int stop_signal_ = 0;           // a stop signal that this process has had and the job not yet followed
  bool job_stopped_ = false;
  Loop::TimerId continue_timer_ = 0;  // 0: none
  int wait_flags_;
};

// Those of `pids` that are still there once `patience` is over; returns sooner where none is left. What watches the job
// from inside it, as Python's resource tracker does, ends right after it.
[[nodiscard]] std::vector<pid_t> those_that_stay(std::vector<pid_t> pids, Nanos patience);

// Is `pid` the process `root` or a descendant of it? Looks at /proc now.
[[nodiscard]] bool in_tree_of(pid_t pid, pid_t root);

}  // namespace headroom
