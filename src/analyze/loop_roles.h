// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <vector>

#include "analyze/looks_at_work.h"
#include "model/loop_role.h"

namespace headroom {

// By place, of what the processes on the GPUs are at from the first kernel to the last: by the names of the functions
// that called it, and by when it is seen among the other looks and beside the lines in which the job numbers its
// epochs. Of processes of which a look may be at another thread, and of looks too far apart, nothing is told; nor of a
// place that several processes come to differently.
[[nodiscard]] std::map<std::string, LoopRole> loop_roles(const Recording& recording, const WatchedJob& watched);

}  // namespace headroom
