// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "batch/attempt_book.h"
#include "batch/executor/executor.h"
#include "batch/snapshot.h"

namespace headroom::batch {

// Which attempt each process of this machine belongs to, and what an attempt's processes use together.
class ProcessTrees {
 public:
  struct Use {
    std::size_t processes = 0;
    Nanos cpu = 0, core_wait = 0;
    std::int64_t rss = 0, io = 0;
  };
  ProcessTrees(const Executor& executor, AttemptBook& book) : executor_(executor), book_(book) {}

  // Absent: of none that is under way. Whose a process is that was nobody's is asked again after a while.
  [[nodiscard]] std::optional<AttemptId> attempt_of(std::int64_t pid, Nanos now);
  void look(const Snapshot& now);
  // The process that an attempt was started as is gone.
  void ended(std::int64_t pid, Nanos at);
  // Whether it belongs to an attempt of this batch that is under way or ended not long ago: lists of processes that
  // were read before name those. A while after that whoever has its number is somebody else.
  [[nodiscard]] bool is_ours(std::int64_t pid) const;
  // Of all its processes that were seen lately; those that have ended count with what they had used.
  [[nodiscard]] Use use_of(AttemptId attempt) const;

 private:
  struct Process {
    std::optional<AttemptId> attempt;
    std::optional<Nanos> ours;  // when it last was of an attempt, whatever became of that
    Nanos looked = 0, asked = 0, cpu = 0, core_wait = 0;
    std::int64_t rss = 0, io = 0;
  };
  void add_up();

  const Executor& executor_;
  AttemptBook& book_;
  std::unordered_map<std::int64_t, Process> processes_;
  std::unordered_map<AttemptId, Use> use_;  // at the last look
};

}  // namespace headroom::batch
