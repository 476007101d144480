// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "model/recording.h"

// Of a log of GPUs that are not NVIDIA's, whose they are: what is advised is a tool that knows them.
namespace headroom {

inline constexpr std::string_view kVendor = "vendor";  // in RecordingMeta::extra: "amd", "intel"

inline std::string_view vendor_of(const Attrs& extra) {
  const auto found = extra.find(std::string(kVendor));
  return found == extra.end() ? std::string_view() : std::string_view(found->second);
}

// The command that writes a log with times, use, memory and power.
inline std::string_view log_command(std::string_view vendor) {
  if (vendor == "amd") return "amd-smi monitor -p -t -u -v -w 1 --csv";
  if (vendor == "intel") return "xpu-smi dump -d -1 -m 0,1,2,18 -i 1";
  return "nvidia-smi --query-gpu=timestamp,index,utilization.gpu,memory.used,power.draw --format=csv -l 1";
}

// The command that says which clocks are set and what limits them.
inline std::string_view clocks_command(std::string_view vendor) {
  if (vendor == "amd") return "amd-smi metric -c -p -t";
  if (vendor == "intel") return "xpu-smi dump -d -1 -m 2,35";
  return "nvidia-smi -q -d PERFORMANCE,CLOCK";
}

}  // namespace headroom
