// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "view/view.h"

namespace headroom::view {

// By position in Ledger::devices, the sources of kind kGpu.
using GpuSources = std::vector<std::vector<SourceId>>;
[[nodiscard]] std::optional<std::size_t> position_of(const GpuSources& gpus, SourceId gpu);

// Sets View::processes and processes_left_out.
void add_processes(const Recording& recording, const Explanation& explanation, const GpuSources& gpus, std::size_t most,
                   View& view);

}  // namespace headroom::view
