// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/batch.h"

namespace headroom::scheduler {

// The input of a planner: tasks, the machine, how to use it, and what earlier batches learned.

// Position in the list of groups that the batch's owner keeps.
using GroupIndex = int;

// A task as the scheduler needs it; plan_tasks() makes them from TaskSpecs.
struct PlannedTask {
  TaskIndex task = 0;  // added in this order, without gaps
  GroupIndex group = 0;
  ResourceRequest resources;
  RetryPolicy retry;
  std::optional<Nanos> timeout, hang_timeout;
  int priority = 0;
  std::vector<TaskIndex> after;  // may be larger than `task`; no cycles (order.h rejects them)
  std::vector<GroupIndex> after_groups;
  std::optional<Nanos> expected;        // duration alone, from earlier batches only
  TaskState state = TaskState::kReady;  // an ended one (resume): counts for those that come after it, never runs
  int attempts_before = 0;              // resume: the next attempt's number is one more
  int failures_before = 0;              // resume: retries used up
};

// The requests that many tasks have in common; most batches have a handful of these.
struct TaskProfile {
  GroupIndex group = 0;
  ResourceRequest resources;
  RetryPolicy retry;
  std::optional<Nanos> timeout, hang_timeout;
};

// Position in PlannerSetup::gpus.
using GpuIndex = int;

struct GpuFacts {
  std::string uuid;
  std::string model;  // memory and speed are learned per group and model
  std::int64_t memory_bytes = 0;
};

struct HostFacts {
  double cores = 1;               // usable: cpuset and quota applied
  std::int64_t memory_bytes = 0;  // usable; 0: not known, not a limit
};

// What earlier batches learned about a group on a GPU model (and what this one learned, for the next).
struct GroupHistory {
  GroupIndex group = 0;
  std::string gpu_model;
  std::int64_t finished = 0;                   // tasks it rests on
  std::optional<std::int64_t> peak_gpu_bytes;  // largest seen
  std::optional<double> gpu_util_ratio;        // alone, while stepping
  std::optional<double> cores;                 // alone
  std::optional<Nanos> startup, duration;      // of one task, alone
  std::optional<double> seconds_per_step;      // alone
};

enum class PackMode : std::uint8_t {
  kPack,       // as many as memory, host and measured throughput allow
  kFixed,      // per_gpu tasks a GPU (--per-gpu N): the person knows; memory is not second-guessed
  kOnePerGpu,  // --no-pack
};

struct PlannerSetup {
  std::vector<GpuFacts> gpus;
  HostFacts host;
  PackMode pack = PackMode::kPack;
  int per_gpu = 1;             // kFixed
  bool measure_alone = true;   // kPack: tasks are alone until enough is known of that to say what packing gained
  int slots = 0;               // places for tasks without a GPU; 0: as many as cores
  bool space_sharing = false;  // MPS runs on the GPUs: kernels of several processes run side by side
  Nanos decide_every = 5 * kSecond;
  int ooms_until_failed = 4;            // the third puts the task alone on its GPU; so many end it
  Nanos tenant_memory = 600 * kSecond;  // how long a GPU keeps room for another user's process after it was seen
  std::vector<GroupHistory> history;
  AttemptId first_attempt = 1;  // a resume goes on counting
};

// A share of so many bytes, or a multiple of them.
[[nodiscard]] inline std::int64_t scaled(std::int64_t bytes, double factor) {
  return static_cast<std::int64_t>(static_cast<double>(bytes) * factor);
}

}  // namespace headroom::scheduler
