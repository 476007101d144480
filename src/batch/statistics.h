// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "batch/attempt_book.h"
#include "model/batch.h"
#include "model/batch_progress.h"
#include "scheduler/planner.h"

namespace headroom::batch {

// When and as what an attempt ran, for the figures that the recording gives once the batch has ended.
struct AttemptSpan {
  AttemptId attempt = 0;
  std::string task;
  Nanos start = 0, end = 0;   // CLOCK_BOOTTIME
  bool kernels_seen = false;  // while it ran
};

// What a run comes to: attempts and tasks are counted as they end, and how many ran on each GPU as time passes.
class BatchStatistics {
 public:
  explicit BatchStatistics(std::vector<BatchGpu> gpus) : gpus_(std::move(gpus)) {}

  void time_passed(Nanos elapsed, const scheduler::Planner& planner);
  void attempt_closed(const std::string& task, const BookedAttempt& attempt);
  void runs_again(AttemptOutcome after);
  void task_failed(const std::string& task) { failed_.push_back(task); }
  void ran_when_headroom_died(const std::string& task) { summary_.rerun_after_crash.push_back(task); }
  void quarantined(const std::string& uuid) { quarantined_.insert(uuid); }

  [[nodiscard]] const std::vector<std::string>& failed() const { return failed_; }
  [[nodiscard]] const std::vector<std::string>& cpu_fallbacks() const { return cpu_fallbacks_; }
  [[nodiscard]] const std::vector<AttemptSpan>& on_gpus() const { return on_gpus_; }
  [[nodiscard]] BatchProgress::Gpu progress_of(const BatchGpu& gpu,
                                               const std::vector<scheduler::AloneRate>& alone) const;
  // Without what only the recording tells: how busy the devices were (ledger_figures.h).
  [[nodiscard]] BatchSummary summary(const scheduler::Planner& planner, Nanos wall) const;

 private:
  struct GpuUse {
    double seconds_with_work = 0, task_seconds = 0, steps = 0;
    std::int64_t tasks = 0, without_steps = 0;
  };
  [[nodiscard]] std::optional<BatchSummary::Packing> packing_of(const BatchGpu& gpu,
                                                                const std::vector<scheduler::AloneRate>& alone) const;

  const std::vector<BatchGpu> gpus_;
  std::unordered_map<std::string, GpuUse> use_;  // by UUID
  BatchSummary summary_;                         // what is counted of it so far
  std::set<std::string> quarantined_;
  std::vector<AttemptSpan> on_gpus_;                 // attempts that ran on GPUs
  std::vector<std::string> failed_, cpu_fallbacks_;  // names of tasks
};

}  // namespace headroom::batch
