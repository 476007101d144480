// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "batch/attempt_book.h"
#include "scheduler/planner.h"

namespace headroom::batch {

// Counts the time up to `now` at the speed that held since the last call, and asks the planner for the new speed.
void count_time_alone(BookedAttempt& attempt, const scheduler::Planner& planner, Nanos now);

// What it would have taken alone, by what was counted, if it goes on at this speed until `now`.
[[nodiscard]] Nanos time_alone(const TimeAlone& alone, Nanos now);

// How many times longer than alone it took from `start` to `end`; 1 where that is not known.
[[nodiscard]] double stretch_of(const TimeAlone& alone, Nanos start, Nanos end);

}  // namespace headroom::batch
