// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/child.h"
#include "batch/executor/executor.h"
#include "batch/executor/guardian.h"
#include "batch/executor/open_files.h"
#include "live/loop.h"
#include "model/batch.h"

namespace headroom::batch {

struct ChildExit {
  AttemptId attempt = 0;
  ExitStatus status;
  Nanos at = 0;  // CLOCK_BOOTTIME
  Nanos cpu_time = 0;
  std::int64_t peak_host_bytes = 0;  // of its largest process
  bool told_to_stop = false;         // by stop()
};

// A process that outlived its attempt. It was stopped; or it may belong to somebody else, and was left alone.
struct LeftOver {
  AttemptId attempt = 0;  // 0: of one that cannot be told
  std::int64_t pid = 0;
  std::string name;
  bool stopped = true;
};

// The processes of a batch: started, stopped and reaped, with everything they start themselves. Each attempt leads a
// process group; this process is the subreaper of what leaves it. An attempt ends when the process that was started
// does: what is left of its group, or of its tree elsewhere, is then stopped. Children that this process had before it
// was a batch's are nobody's business here, and neither is what they leave behind.
class Processes {
 public:
  struct Handlers {
    std::function<void(const ChildExit&)> on_exit;
    std::function<void()> on_guardian_gone;
    std::function<void(const LeftOver&)> on_left_over;
    std::function<void()> on_reaped_by_timer;  // not by a call of reap()
    std::function<void(pid_t)> on_ended;       // a process that was started, before it is reaped; may be empty
  };
  Processes(Loop& loop, Guardian& guardian, std::string batch_id, sigset_t mask, Nanos grace, Handlers handlers);
  ~Processes();  // kills what runs
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  // kBusy, kNoSpace: it could be started later. What it prints goes into `log`.
  [[nodiscard]] Result<pid_t> start(const Launch& launch, const Fd& log);
  // SIGTERM to its group, SIGKILL after the grace time. `force`: SIGKILL at once.
  void stop(AttemptId attempt, bool force = false);
  void reap();  // after SIGCHLD
  // Finds processes that left their group and outlived their attempt, and stops them; once a second is enough.
  void look_for_orphans();
  // Nothing of any attempt is left; or, after the last attempt has ended, stops what is and waits for it.
  void stop_everything_left();

  [[nodiscard]] std::optional<AttemptId> attempt_of(pid_t pid) const;  // of the process that was started

 private:
  struct Running {
    AttemptId attempt = 0;
    Child child;
    Nanos start = 0;  // CLOCK_BOOTTIME, before it was there
    Loop::TimerId kill_timer = 0;
    bool told_to_stop = false;
  };
  struct Lingering {
    AttemptId attempt = 0;
    Nanos kill_at = 0;
  };
  [[nodiscard]] pid_t next_to_reap() const;
  void ended(pid_t pid, int wait_status, Nanos cpu, std::int64_t peak);
  void watch_lingering();
  void kill_marked(AttemptId attempt) const;
  struct Orphan {
    enum class Whose { kRunning, kEnded, kUnknown } whose = Whose::kRunning;
    AttemptId attempt = 0;
  };
  [[nodiscard]] Orphan judge(pid_t orphan) const;

  Loop& loop_;
  Guardian& guardian_;
  const std::string batch_id_;
  const sigset_t mask_;
  const Nanos grace_;
  Handlers handlers_;
  Fd null_;
  std::map<pid_t, Running> by_pid_;
  std::map<AttemptId, pid_t> by_attempt_;
  std::map<pid_t, Lingering> lingering_;  // groups whose leader has ended
  std::map<pid_t, Nanos> orphans_;        // told to end, and when they are killed
  std::set<pid_t> not_ours_;              // children that are left alone
  bool others_leave_orphans_ = false;     // an orphan without a marker need not be a task's
  const OpenFiles open_files_;
  Loop::TimerId lingering_timer_ = 0;
};

}  // namespace headroom::batch
