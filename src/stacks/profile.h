// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace headroom::stacks {

// A stack, and what the GPU did while it was there: seconds of GPUs, estimated where a reading was partly busy.
struct WeightedStack {
  std::vector<std::string> frames;  // outermost first, as recorded
  double idle = 0, busy = 0;
};

}  // namespace headroom::stacks
