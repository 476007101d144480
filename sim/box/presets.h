// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sim/box/device_info.h"

// Which devices a box has: by preset names, or by a TOML description.
namespace headroom::sim {

struct Preset {
  std::string_view name;  // as written in --gpus
  std::string_view summary;
  DeviceInfo info;  // without UUID and bus address
};
[[nodiscard]] std::span<const Preset> presets();

// What a box is made of. Devices are in PCI order; UUIDs and bus addresses follow from the positions.
struct BoxPlan {
  std::vector<DeviceInfo> devices;
  std::string driver_version = "550.54.15";
  int cuda_driver_version = 12040;
};

// "2xA6000,1xRTX4050,T4"; names in any case.
[[nodiscard]] Result<BoxPlan> plan_of_names(std::string_view gpus);
// Takes away what a device under WSL2 does not tell.
void as_under_wsl2(DeviceInfo& info);
// A description in TOML: docs/sim.md lists the keys. `path` is for messages.
[[nodiscard]] Result<BoxPlan> plan_of_toml(std::string_view text, const std::string& path);

}  // namespace headroom::sim
