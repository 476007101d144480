// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/gpu_work.h"
#include "model/recording.h"

namespace headroom {

// What a device was at, to the nanosecond, in one stretch of its time.
struct WorkStretch {
  Nanos begin = 0, end = 0;
  std::uint32_t works = 0;   // bits, by GpuWork
  std::int64_t kernels = 0;  // that began in it
  [[nodiscard]] bool has(GpuWork work) const { return (works >> static_cast<std::uint32_t>(work) & 1U) != 0; }
  [[nodiscard]] bool busy() const { return has(GpuWork::kKernel) || has(GpuWork::kCommunication); }
};

// Of a window of a device's time.
struct DeviceProfile {
  std::int64_t kernels = 0;                      // that began in it
  Nanos kernel_time = 0;                         // some kernel ran
  std::vector<std::pair<Nanos, Nanos>> exposed;  // communication ran and no other kernel: begin and end
  // Of copies, by kind, the operator that most of their time was launched by; none where most were launched by none.
  std::map<GpuWork, std::string> copied_by;
};

// Those of one device, in order of time and without a gap up to the recording's end; none where no profiler looked.
[[nodiscard]] std::vector<WorkStretch> work_stretches(const Recording& recording, SourceId gpu);

// Nothing where no profiler looked.
[[nodiscard]] std::optional<DeviceProfile> device_profile(const Recording& recording, SourceId gpu, Nanos begin,
                                                          Nanos end);

}  // namespace headroom
