// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "base/result.h"
#include "device/nvml_api.h"
#include "model/entities.h"

namespace headroom {

// The facts about the GPU with NVML index `index` that do not change while it is watched. `sys_root` is where /sys is
// (its NUMA node comes from there). Fails only without a UUID.
[[nodiscard]] Result<Device> describe_device(const NvmlSession& session, std::size_t index,
                                             const std::string& sys_root);

}  // namespace headroom
