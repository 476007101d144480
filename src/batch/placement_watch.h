// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "batch/attempt_book.h"
#include "batch/process_trees.h"
#include "batch/snapshot.h"
#include "model/batch_progress.h"
#include "scheduler/planner.h"

namespace headroom::batch {

// What is seen of attempts while they run: where they compute, for the proof of their placement, and what they use, for
// the planner.
class PlacementWatch {
 public:
  // `processes_visible`: the driver's process numbers mean something here (in a container they do not).
  PlacementWatch(std::vector<BatchGpu> gpus, bool processes_visible, const Executor& executor, AttemptBook& book)
      : gpus_(std::move(gpus)), processes_visible_(processes_visible), book_(book), trees_(executor, book) {}

  struct Misplaced {
    AttemptId attempt = 0;
    std::string uuid;  // of the GPU on which it was seen
    std::int64_t pid = 0;
  };
  struct Look {
    scheduler::Readings readings;
    std::vector<Misplaced> misplaced;   // seen for the first time
    std::vector<AttemptId> not_on_gpu;  // likewise, long after their start
  };
  [[nodiscard]] Look look(const Snapshot& now);
  // What its placement comes to; `end` is when it ended.
  [[nodiscard]] PlacementProof proof_of(const BookedAttempt& attempt, Nanos end) const;

  void started_on_gpu(Nanos at) { last_start_ = at; }
  void ended_on_gpu(std::int64_t pid, Nanos at) { trees_.ended(pid, at); }
  // Shortly after a start the driver's lists are worth more looks than they get anyway.
  [[nodiscard]] bool wants_process_lists(Nanos now) const;
  [[nodiscard]] bool looks_at_gpus() const { return !gpu_now_.empty(); }
  [[nodiscard]] const GpuSnapshot* gpu(const std::string& uuid) const;  // as last seen; null: never

 private:
  struct GpuUse {  // by the driver's lists at one look
    struct OfAttempt {
      std::unordered_map<std::string, std::int64_t> bytes;  // by GPU
      std::optional<double> util;                           // of all its processes
    };
    std::unordered_map<AttemptId, OfAttempt> attempts;
    std::unordered_map<std::string, std::int64_t> bytes_of_gpu;  // of the batch, what draws on a screen too
  };
  void look_at_gpus(const Snapshot& now, Look& look);
  void look_at_gpu_processes(const Snapshot& now, Look& look);
  void add_process(BookedAttempt& attempt, const GpuProcessSnapshot& process, GpuUse& use, Look& look);
  static void take(BookedAttempt& attempt, GpuUse& use, Nanos at);
  void count_gpu_time(Nanos elapsed);
  void check_for_gpu_use(Nanos now, Look& look);
  [[nodiscard]] std::vector<scheduler::GpuReading> gpu_readings() const;
  [[nodiscard]] scheduler::AttemptReading reading_of(BookedAttempt& attempt, Nanos now);
  [[nodiscard]] std::vector<BookedAttempt*> running() { return book_.all(Stage::kRunning); }

  const std::vector<BatchGpu> gpus_;
  const bool processes_visible_;
  AttemptBook& book_;
  ProcessTrees trees_;
  std::unordered_map<std::string, GpuSnapshot> gpu_now_;
  struct Others {  // processes that are not the batch's
    std::unordered_map<std::string, std::int64_t> bytes;
    std::unordered_set<std::string> compute;
  } others_;
  Nanos lists_read_ = 0, last_look_ = 0, last_start_ = 0;
};

}  // namespace headroom::batch
