// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sim/box/presets.h"
#include "sim/core/layout.h"

namespace headroom::sim {

// A fault script in TOML, one [[fault]] per entry: docs/sim.md lists kinds and keys. `path` is for messages.
[[nodiscard]] Result<std::vector<Fault>> parse_faults(std::string_view text, const std::string& path,
                                                      const BoxPlan& plan);

}  // namespace headroom::sim
