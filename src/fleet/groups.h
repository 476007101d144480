// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#include "model/fleet.h"

namespace headroom::fleet {

// Sums the jobs of `fleet` by `fleet.by`, and sorts them and their groups: what could bring most back first. Groups
// beyond the first `most` become one. The total is the sum of the groups, and each of them that of its jobs.
void sum_up(std::size_t most, Fleet& fleet);

}  // namespace headroom::fleet
