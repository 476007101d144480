// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

// Files that travel inside the executable, so that one file is a complete Headroom.
namespace headroom::sim {

[[nodiscard]] std::string_view nvml_library_blob();   // libnvidia-ml.so.1
[[nodiscard]] std::string_view sim_library_blob();    // libheadroom_sim.so
[[nodiscard]] std::string_view python_module_blob();  // headroom_sim.py

}  // namespace headroom::sim
