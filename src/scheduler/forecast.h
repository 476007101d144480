// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "scheduler/machine.h"

// When the batch will end, and which running tasks decide that, and so how much company they may have. Only with
// lengths known from earlier batches: wrong ones cost more than it gains.
namespace headroom::scheduler {

// The rest of the batch, as work that can be divided at will: tasks of the usual load on the usable GPUs.
struct Forecast {
  double work_seconds = 0;               // alone, of all that waits or runs
  std::vector<double> critical_seconds;  // alone, of the longest task on each usable GPU
  std::vector<double> speeds;            // of each of n tasks beside each other, relative to alone; from n = 1
  int full = 1;                          // more of them do not do more
  double end_seconds = 0;                // from now
  // The most tasks of which each still has this speed.
  [[nodiscard]] int most(double speed) const;
  // With `seconds` left: the work the GPUs do if each takes only as many tasks as lets its longest one end in time.
  [[nodiscard]] double capacity(double seconds) const;
  [[nodiscard]] double end() const;
};

// The forecast of one instant: made when it is first asked for, and again after each start.
class CriticalPath {
 public:
  CriticalPath(const PlannerSetup& setup, const TaskGraph& graph, const Machine& machine, const Fit& fit)
      : setup_(setup), graph_(graph), machine_(machine), fit_(fit) {}

  void forget() { forecast_.reset(); }
  // Would the batch end later if the task began on this GPU, and not on another, or later?
  [[nodiscard]] bool delayed_by(TaskIndex task, GpuIndex gpu, double load);

 private:
  [[nodiscard]] const Forecast* forecast(double load);
  [[nodiscard]] Forecast make(double load) const;
  [[nodiscard]] double soonest_place(GpuIndex besides) const;  // seconds, until another GPU's next task ends
  [[nodiscard]] bool room_on(TaskIndex task, GpuIndex gpu) const;

  const PlannerSetup& setup_;
  const TaskGraph& graph_;
  const Machine& machine_;
  const Fit& fit_;
  std::optional<Forecast> forecast_;
};

}  // namespace headroom::scheduler
