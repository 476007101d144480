// SPDX-License-Identifier: Apache-2.0
#include "tune/replay.h"

namespace headroom::tune {

ReplayOutcome replay(const std::vector<ReplayTrial>&, const ReplayMachine&, const ReplaySettings&, Direction,
                     const std::string&, double) {
  return {};
}

}  // namespace headroom::tune
