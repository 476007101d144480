// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tune/workers.h"

namespace headroom::tune {

// From which trial on several were open: from the first, beside which the second began, or after three or more that
// were alone from begin to end; clear where, from then on, half as many more than one were on average.
[[nodiscard]] std::optional<ParallelSince> parallel_since(const Study& study, const Timeline& timeline);
// How many trials were open, over time; without `workers`, which it takes, and without `since` and `fewer`.
[[nodiscard]] ParallelismFacts parallelism(const Timeline& timeline, std::int64_t workers, Told told,
                                           bool startup_known);

// Every second of the workers in one account; those that had left by gone_workers() have none from then on.
[[nodiscard]] WorkerTime worker_time(const Study& study, const Timeline& timeline, std::int64_t workers,
                                     const OpenCurve& gone = {});

// Adds what start-ups between trials take to `startup`, and the share of both kinds.
void add_between(const Timeline& timeline, const WorkerTime& time, StartupFacts& startup);

}  // namespace headroom::tune
