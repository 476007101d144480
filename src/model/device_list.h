// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/entities.h"

namespace headroom {

// A process on a GPU, as it was when looked at.
struct DeviceProcess {
  std::int64_t pid = 0;
  std::string name, user, cmdline;  // "" where the process could not be looked at
  std::optional<std::int64_t> uid;
  ContextKind kind = ContextKind::kCompute;
  Reading<std::int64_t> memory_bytes = tl::unexpected(Absent::kNotSampled);
  Reading<std::int64_t> sm_util = tl::unexpected(Absent::kNotSampled);  // stored, of kProcessSmUtil
};

struct DeviceStatus {
  Device device;
  std::vector<std::pair<Metric, Reading<std::int64_t>>> readings;  // stored values, in the order of the metric table
  std::vector<DeviceProcess> processes;                            // by pid

  [[nodiscard]] Reading<std::int64_t> reading(Metric metric) const;  // kNotSampled if it is not there
};

// The answer of `headroom devices`: what is in this box, now.
struct DeviceList {
  std::string driver_version;
  std::vector<DeviceStatus> devices;  // by index
  std::vector<std::string> notes;     // what could not be opened, what is unusual
};

// The latest reading of everything in a short recording of this machine's GPUs.
[[nodiscard]] DeviceList device_list_of(const Recording& recording);

}  // namespace headroom
