// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/events.h"
#include "scheduler/learned.h"
#include "scheduler/packing.h"
#include "scheduler/setup.h"
#include "scheduler/task_graph.h"

// The machine as the placer sees it: GPUs, slots, cores and memory, the attempts that run on them, and how much of
// each they count for.
namespace headroom::scheduler {

struct Gpu {
  GpuFacts facts;
  bool usable = true;
  std::vector<AttemptId> running;  // oldest first
  Packer packer;
  std::int64_t others_bytes = 0;
  bool others_compute = false;
  std::optional<Nanos> tenant_seen;
  double kernels_ratio = 0;  // of its tasks, at the last reading: the sum of their utilisations
};

// The work that an attempt has done so far, by samples.
struct AttemptWork {
  double done_seconds = 0;   // as if alone, until the last reading
  bool all_measured = true;  // none of it is only predicted
  bool all_counted = true;   // what it did beside others is known by its steps
  double alone_seconds = 0;  // of stepping with the GPU to itself
  struct {
    int count = 0;
    double sum = 0, squares = 0;
  } alone_utils;                       // readings of that time
  std::optional<double> work_seconds;  // as if alone, of the reading that is being taken in
  std::optional<double> steps;
  std::optional<std::int64_t> io_bytes;
  Nanos last_progress = 0;
  Nanos began = 0;  // about when its first kernel came: in the middle of the time between two looks
  struct {
    double seconds = 0, gpu = 0, cpu = 0, step_seconds = 0, steps = 0;
    bool alone = true, steps_alone = true, has_gpu = false, has_cpu = false;
  } window;  // stepping, not yet shown to its group's statistics
};

struct RunningAttempt {
  AttemptId id = 0;
  TaskIndex task = 0;
  TaskProfile profile;
  Nanos expected = -1;  // of its task, alone; < 0: not known
  std::vector<GpuIndex> gpus;
  int slot = 0;
  Nanos start = 0, last_reading = 0;
  RunningMemory memory;
  std::int64_t host_need = 0, host_now = 0;  // bytes
  bool alone = false;                        // asked for: nothing else may join
  bool had_company = false;
  bool in_startup = true;
  bool seen = false;  // a reading of it came
  AttemptWork work;
  std::optional<StopReason> stopping;
};

// The host memory that attempts may reserve.
[[nodiscard]] std::int64_t most_host_bytes(const HostFacts& host);

class Machine {
 public:
  Machine(const PlannerSetup& setup, const Learned& learned);

  void advance(Nanos now) { now_ = std::max(now_, now); }
  [[nodiscard]] Nanos now() const { return now_; }

  [[nodiscard]] GpuIndex gpu_count() const { return static_cast<GpuIndex>(gpus_.size()); }
  [[nodiscard]] bool has(GpuIndex gpu) const { return gpu >= 0 && gpu < gpu_count(); }
  [[nodiscard]] const std::vector<Gpu>& gpus() const { return gpus_; }
  [[nodiscard]] Gpu& gpu(GpuIndex index) { return gpus_[static_cast<std::size_t>(index)]; }
  [[nodiscard]] const Gpu& gpu(GpuIndex index) const { return gpus_[static_cast<std::size_t>(index)]; }
  [[nodiscard]] int usable_gpus() const;
  void restore(GpuIndex gpu);  // usable again, with nothing known of how it shares

  [[nodiscard]] std::map<AttemptId, RunningAttempt>& running() { return running_; }
  [[nodiscard]] const std::map<AttemptId, RunningAttempt>& running() const { return running_; }
  [[nodiscard]] RunningAttempt* find(AttemptId id);
  const RunningAttempt& seat(RunningAttempt&& attempt);  // on its GPUs or a slot; gives it the smallest free number
  RunningAttempt leave(AttemptId id);

  [[nodiscard]] int slots() const;
  [[nodiscard]] bool slot_free() const { return on_slots_ < slots(); }
  [[nodiscard]] std::int64_t counted_bytes(const Gpu& gpu) const;
  [[nodiscard]] std::int64_t limit_bytes(const Gpu& gpu) const;
  [[nodiscard]] std::vector<double> loads(const Gpu& gpu) const;
  [[nodiscard]] double cores_counted() const;
  // When the next of the tasks too short to be watched is expected to be past its start-up, and needs less of the
  // cores.
  [[nodiscard]] std::optional<Nanos> startup_over() const;
  void host_available(std::int64_t bytes) { host_available_ = bytes; }
  // For one more attempt. `joins`: the cores of one that would join others on a GPU. The first on a GPU does not ask
  // for cores that nobody declared: an idle GPU is worse than a busy host.
  [[nodiscard]] bool host_fits(std::optional<double> cpus, std::int64_t need_bytes, std::optional<double> joins) const;

  [[nodiscard]] const GroupStats& stats(const RunningAttempt& attempt) const;
  [[nodiscard]] const std::string& model_of(const RunningAttempt& attempt) const;  // of its GPUs; "" on a slot
  [[nodiscard]] Nanos remaining(const RunningAttempt& attempt) const;              // alone; < 0: not known
  [[nodiscard]] std::vector<double> prices() const;                                // of each group; see Planner
  [[nodiscard]] AloneTime alone_time(const RunningAttempt& attempt, Nanos now) const;

 private:
  [[nodiscard]] double full_rate(const Gpu& gpu, const GroupStats& of) const;
  [[nodiscard]] double predicted_speed(const RunningAttempt& attempt) const;

  const PlannerSetup& setup_;
  const Learned& learned_;
  Nanos now_ = 0;
  std::vector<Gpu> gpus_;
  std::map<AttemptId, RunningAttempt> running_;
  std::set<int> free_slots_;  // below the highest ever used
  int next_slot_ = 0, on_slots_ = 0;
  std::optional<std::int64_t> host_available_;
  std::string no_gpu_;  // the model of a task without one
};

// The need of one task on one GPU.
struct Need {
  std::int64_t bytes = 0;        // beside others
  std::int64_t alone_bytes = 0;  // on an empty GPU: without the margin
  bool probe = false;            // nothing is known of its group there
  double load = 0;
};

// Compares the need of a task's next attempt with what a GPU and the host have now. Knows no queue and no order.
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
  // What is, first of all, with places for its numbers; "" nothing.
  [[nodiscard]] std::string_view in_the_way(TaskIndex task, const Gpu& gpu, const Need& need, double gain) const;
  [[nodiscard]] bool has_lone_attempt(const Gpu& gpu) const;

  const PlannerSetup& setup_;
  const TaskGraph& graph_;
  const Machine& machine_;
  const Learned& learned_;
};

}  // namespace headroom::scheduler
