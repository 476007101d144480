// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
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

// pandas writes columns with two names in a line for each: ",util,util,mem,mem" above "gpu,0,1,0,1", and, where the
// rows' times have a name, it stands alone below. What the names are together, "gpu 0 util", with the times' name in
// front; nothing for all others. `below`: the text behind the upper line.
struct TwoLevels {
  std::vector<std::string> names;
  std::string last_line;  // of the header
};
[[nodiscard]] std::optional<TwoLevels> two_levels(const std::vector<std::string_view>& upper, std::string_view below,
                                                  char separator);

}  // namespace headroom
