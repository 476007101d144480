// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// LibreHardwareMonitor and its like have two headers: "/gpu-nvidia/0/load/0" above "GPU Core". Whether this is the
// upper.
[[nodiscard]] bool are_sensors(const std::vector<std::string_view>& cells);
// The names of the lower one with what the upper says of the columns of GPUs: which GPU, and what is measured.
[[nodiscard]] std::vector<std::string> with_sensors(const std::vector<std::string>& sensors,
                                                    const std::vector<std::string_view>& names);

}  // namespace headroom
