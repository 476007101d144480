// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

#include "view/view.h"

namespace headroom::view {

// Sets View::processes and processes_left_out.
void add_processes(const Recording& recording, const Explanation& explanation, const std::vector<SourceId>& gpus,
                   std::size_t most, View& view);

}  // namespace headroom::view
