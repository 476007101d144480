// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "batch/attempt_book.h"
#include "batch/task_sizes.h"
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

// What a run comes to: attempts and tasks are counted as they end, and how many ran on each GPU as time passes. The
// time of a GPU is shared equally by the attempts on it: what a failed one had of it is no time in which work was done.
class BatchStatistics {
 public:
  explicit BatchStatistics(std::vector<BatchGpu> gpus) : gpus_(std::move(gpus)) {}

  void attempt_runs(const Attempt& attempt, Nanos at);
  void attempt_left(const Attempt& attempt, Nanos at);  // its processes have ended; how is said later
  void attempt_closed(const TaskSpec& task, const BookedAttempt& attempt);
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
    void advance(Nanos at);
    std::map<AttemptId, Nanos> shares;  // of its time; of attempts that were not closed
    std::set<AttemptId> running;
    Nanos at = 0;
    double seconds_with_work = 0, task_seconds = 0, steps = 0;
    double working_seconds = 0;  // without the shares of attempts that came to nothing
    std::int64_t tasks = 0, without_steps = 0;
  };
  // What one task per GPU of this model would do; null unless enough is known of it.
  [[nodiscard]] const scheduler::AloneRate* rate_of(const std::vector<scheduler::AloneRate>& rates,
                                                    const std::string& model) const;
  [[nodiscard]] std::string_view why_unknown(const std::vector<scheduler::AloneRate>& rates,
                                             const std::string& model) const;
  [[nodiscard]] bool sizes_differ(const std::string& model) const;
  [[nodiscard]] bool shares_gpu(const BatchGpu& gpu) const;
  [[nodiscard]] std::optional<BatchSummary::Packing> packing_of(const BatchGpu& gpu,
                                                                const std::vector<scheduler::AloneRate>& alone) const;

  const std::vector<BatchGpu> gpus_;
  std::unordered_map<std::string, GpuUse> use_;                    // by UUID
  std::map<std::string, std::map<std::string, TaskSizes>> sizes_;  // by the GPU's model, then by group
  BatchSummary summary_;                                           // what is counted of it so far
  std::set<std::string> quarantined_;
  std::vector<AttemptSpan> on_gpus_;                 // attempts that ran on GPUs
  std::vector<std::string> failed_, cpu_fallbacks_;  // names of tasks
};

}  // namespace headroom::batch
