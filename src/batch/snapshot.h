// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/entities.h"

// What one tick of the sampling saw, as far as a batch needs it. What could not be read is absent.
namespace headroom::batch {

struct GpuSnapshot {
  std::string uuid;
  std::optional<double> util_ratio;
  std::optional<std::int64_t> used_bytes;
  std::optional<double> power_watts, temperature_celsius;
  bool processes_listed = false;  // the driver's process lists were read in this tick
};
struct GpuProcessSnapshot {
  std::string uuid;  // of the GPU
  std::int64_t pid = 0;
  ContextKind kind = ContextKind::kCompute;
  std::optional<std::int64_t> memory_bytes;
  std::optional<double> sm_util_ratio;
};
struct ProcessSnapshot {
  std::int64_t pid = 0;
  std::optional<Nanos> cpu_time;
  std::optional<Nanos> core_wait;  // of its main thread: wanted a core, and got none
  std::optional<std::int64_t> rss_bytes, io_bytes;
};

struct Snapshot {
  Nanos at = 0;
  std::vector<GpuSnapshot> gpus;
  std::vector<GpuProcessSnapshot> gpu_processes;
  std::vector<ProcessSnapshot> processes;
  std::vector<std::string> lost, back;  // GPUs, by UUID
  std::optional<std::int64_t> host_available_bytes;
};

}  // namespace headroom::batch
