// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "batch/attempt_book.h"
#include "batch/options.h"
#include "scheduler/planner.h"

namespace headroom::batch {

// A task on its place: command and environment with everything filled in that depends on it.
[[nodiscard]] BookedAttempt placed_task(const scheduler::StartAttempt& start, const BatchOptions& options);

}  // namespace headroom::batch
