// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "batch/executor/background_reader.h"
#include "batch/executor/executor.h"
#include "batch/executor/guardian.h"
#include "batch/executor/open_files.h"
#include "batch/executor/processes.h"
#include "batch/place.h"
#include "host/cgroup.h"
#include "live/loop.h"

namespace headroom::batch {

struct LocalExecutorOptions {
  std::string batch_id;
  sigset_t mask{};  // of signals, for the tasks
  Nanos grace = 10 * kSecond;
  std::vector<std::string> environment;            // "NAME=value", for every attempt that does not set it itself
  std::function<void(std::int64_t pid)> on_ended;  // what was started as an attempt, before it is reaped; may be empty
};

// Attempts are processes of this machine, children of this one; a guardian stops them should this process die.
class LocalExecutor final : public Executor {
 public:
  // Logs go into `place`, which has to outlive it.
  LocalExecutor(Loop& loop, Guardian& guardian, Place& place, LocalExecutorOptions options);
  ~LocalExecutor() override;

  void describe(const TaskSpec& task, Attempt& attempt) const override;
  void start(std::vector<Launch> launches) override;
  void stop(AttemptId attempt, StopHow how) override;
  [[nodiscard]] std::vector<ExecutorEvent> take_events() override;  // reaps
  void listen(std::function<void()> ready) override { ready_ = std::move(ready); }
  [[nodiscard]] Room room() const override;
  [[nodiscard]] std::string readable_log(const Attempt& attempt) const override;
  [[nodiscard]] bool has_printed(const Attempt& attempt) const override;
  void read_output(AttemptId attempt, ReadOutput read) override { reader_.read(attempt, std::move(read)); }
  [[nodiscard]] std::optional<AttemptId> started_as(std::int64_t pid) const override;
  [[nodiscard]] std::optional<AttemptId> owner_of(std::int64_t pid) const override;
  void finish() override;

 private:
  void start_one(const Launch& launch);
  void exited(const ChildExit& exit);
  void identify_fresh();
  void look_for_orphans();
  void look_for_oom_kills();
  void count_oom_kills(const ExitStatus& status, AttemptExited& event);
  void tell(MessageKind kind, std::string text);
  void tell_left_over(const LeftOver& process);

  Loop& loop_;
  Place& place_;
  const LocalExecutorOptions options_;
  const std::string boot_id_;
  SpareFiles spare_;
  Processes processes_;
  std::function<void()> ready_;
  std::vector<ExecutorEvent> events_;
  BackgroundReader reader_;
  struct Fresh {
    AttemptId attempt = 0;
    pid_t pid = 0;
  };
  std::vector<Fresh> fresh_;                // started, not yet identified
  std::map<AttemptId, std::string> names_;  // of the logs of the latest, for people
  Loop::TimerId identify_timer_ = 0, orphan_timer_ = 0;
  host::OwnCgroup cgroup_;
  std::optional<host::OomKills> oom_kills_;  // at the last look
  std::int64_t oom_kills_told_ = 0;
  Nanos oom_killed_at_ = 0;  // when they were seen to grow
};

}  // namespace headroom::batch
