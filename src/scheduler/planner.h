// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/events.h"
#include "scheduler/learned.h"
#include "scheduler/setup.h"
#include "scheduler/task_graph.h"

// The batch's decisions: state + event -> actions. No clock, no process, no file: time is an argument, and the same
// events at the same times give the same actions. Whoever owns the processes (the executor) feeds events in and does
// what the actions say, in their order. An event may be handed in while the actions of the one before are still being
// done: every StartAttempt must be answered by AttemptStarted or AttemptEnded in the end, and nothing else.
namespace headroom::scheduler {

// --- what can be asked of it, for reports, status and tests ---
struct GpuView {
  bool usable = true;              // false: quarantined
  std::vector<AttemptId> running;  // oldest first
  std::int64_t counted_bytes = 0;  // what the running attempts count for
  std::int64_t limit_bytes = 0;    // what they may count for: 98 % of the memory, less what others use or may want
  double load = 0;                 // sum of the groups' utilisation
  double parallelism = 1;          // learned: tasks' worth of kernels that run side by side
  double predicted_rate = 0;       // tasks' worth of work per task alone on a GPU
  std::optional<double> max_load;  // the guard's limit, while it holds
  int direction_changes = 0;       // how often concurrency turned from up to down or back while tasks were queued
};

struct WhyWaiting {
  std::string reason;             // "" for a task that is not ready
  std::vector<std::string> gpus;  // by GpuIndex: "needs 4.0 GiB, 3.1 GiB free"; "" where only its turn has not come
};

class Planner {
 public:
  explicit Planner(PlannerSetup setup);
  ~Planner();
  Planner(Planner&&) noexcept;
  Planner& operator=(Planner&&) noexcept;

  // `now` never goes back. Unknown attempts and tasks are ignored (a late report is no error).
  [[nodiscard]] std::vector<Action> handle(Nanos now, const Event& event);
  // When a Tick is due (a retry, a timeout, the next packing decision); absent: only when something happens.
  [[nodiscard]] std::optional<Nanos> next_wake() const;
  // Nothing runs and nothing will: every task has ended, or the batch was drained or stopped.
  [[nodiscard]] bool finished() const;

  [[nodiscard]] TaskState state(TaskIndex task) const;
  [[nodiscard]] BatchCounts counts() const;
  [[nodiscard]] GpuView gpu(GpuIndex gpu) const;
  [[nodiscard]] double cores_counted() const;  // of the running attempts, as the host gate counts them
  // How far a running attempt is at this time, and how fast; CloseAttempt says the same of one that ended.
  [[nodiscard]] std::optional<AloneTime> alone_time(AttemptId attempt, Nanos now) const;
  // Of each group: how much of the machine a second of its work alone takes, where the machine is full of its tasks.
  // 0: not known yet.
  [[nodiscard]] std::vector<double> prices() const;
  // Why the first task in the queue does not run, in words; "" when none is ready.
  [[nodiscard]] std::string why_waiting() const;
  // The same of any ready task, with what is in its way on each GPU.
  [[nodiscard]] WhyWaiting why_waiting(TaskIndex task) const;
  // How often it has looked at a task, or at one that stands for all that need the same, to place it.
  [[nodiscard]] std::int64_t looks() const;
  [[nodiscard]] std::vector<AloneRate> alone_rates() const;  // one for each GPU model, by its name
  // What was learned, for the next batch's PlannerSetup::history.
  [[nodiscard]] std::vector<GroupHistory> learned() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace headroom::scheduler
