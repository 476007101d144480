// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "scheduler/machine.h"
#include "scheduler/task_graph.h"

// What a task's next attempt needs, and whether a GPU and the host have it now. Knows no queue and no order.
namespace headroom::scheduler {

// What one task needs on one GPU.
struct Need {
  std::int64_t bytes = 0;        // beside others
  std::int64_t alone_bytes = 0;  // on an empty GPU: without the margin
  bool probe = false;            // nothing is known of its group there
  double load = 0;
};

class Fit {
 public:
  Fit(const PlannerSetup& setup, const TaskGraph& graph, const Machine& machine, const Learned& learned)
      : setup_(setup), graph_(graph), machine_(machine), learned_(learned) {}

  // Why no attempt of this profile can ever run on this machine; absent: one can.
  [[nodiscard]] std::optional<std::string> impossible(const TaskProfile& profile) const;
  [[nodiscard]] bool wants_whole_gpus(TaskIndex task) const {
    const ResourceRequest& need = graph_.profile(task).resources;
    if (need.gpus == 0) return false;
    return need.alone || graph_.task(task).tries.alone || (need.gpus > 1 && setup_.pack != PackMode::kFixed);
  }
  [[nodiscard]] std::int64_t host_bytes(TaskIndex task) const;
  [[nodiscard]] Need need_of(TaskIndex task, GpuIndex gpu) const;
  [[nodiscard]] bool host_fits(TaskIndex task, bool extra) const;
  [[nodiscard]] bool memory_fits(const Gpu& gpu, const Need& need) const;
  // Everything but what the kernels would slow each other. `gain`: what it must add to the GPU's rate of work.
  [[nodiscard]] bool fits(TaskIndex task, GpuIndex gpu, const Need& need, double gain) const;
  // Beside others one unknown task at a time on the whole machine, until it has shown how it begins.
  [[nodiscard]] bool probe_runs(GroupIndex group) const;
  // What packing gains is measured against tasks alone: until enough is known of the group's, its tasks are alone.
  [[nodiscard]] bool is_measured_alone(GroupIndex group, const Gpu& gpu) const;
  // Why it does not fit on the GPU now, with the numbers; "" where it would.
  [[nodiscard]] std::string obstacle(TaskIndex task, GpuIndex gpu, double gain) const;

 private:
  [[nodiscard]] bool has_lone_attempt(const Gpu& gpu) const;

  const PlannerSetup& setup_;
  const TaskGraph& graph_;
  const Machine& machine_;
  const Learned& learned_;
};

}  // namespace headroom::scheduler
