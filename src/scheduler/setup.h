// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/batch.h"
#include "scheduler/learned.h"

// What a planner is told of the machine and of how to use it.
namespace headroom::scheduler {

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

}  // namespace headroom::scheduler
