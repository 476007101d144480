// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "analyze/analysis.h"
#include "diagnose/claims.h"

namespace headroom::diagnose {

// After the last kernel of a log, or where hardly one ran any more.
[[nodiscard]] bool at_a_quiet_end(const Analysis& a, std::size_t device, const Slice& slice);
// Devices that no program had a context on from the begin until others, which worked till then, had been given back:
// jobs that ran in turn.
struct Turns {
  std::vector<std::size_t> first, later;
};
[[nodiscard]] Turns turns_of(const Analysis& a);
// Idle time of a later one before its job.
[[nodiscard]] bool before_its_turn(const Analysis& a, std::size_t device, const Slice& slice);
// Not between two jobs, not after the last, and not before its turn.
[[nodiscard]] bool during_work(const Analysis& a, std::size_t device, const Slice& slice);
[[nodiscard]] Claims between_jobs_of(const Analysis& a);
// A log of which nothing is known but that a job started: memory grew to its end, and hardly a kernel ran.
[[nodiscard]] bool only_starts(const Analysis& a);
// Memory that grew in a log with hardly a kernel and is in use at its end: what a job does that starts.
struct MemoryGrowth {
  std::string words;    // "": none
  bool lately = false;  // in the second half of the log: it is no start that stands still
};
[[nodiscard]] MemoryGrowth memory_growth(const Analysis& a, std::size_t device);
// A log in which nearly all readings of all GPUs show no kernel: whatever ran, it is no job that could be faster.
[[nodiscard]] bool hardly_used(const Analysis& a);
// "23.8 GiB of 24.0 GiB at most"; "" where it is not known.
[[nodiscard]] std::string most_memory(const Analysis& a, std::size_t device);
// "GPU 0: 23.8 GiB of 24.0 GiB at most", likewise.
[[nodiscard]] std::string memory_words(const Analysis& a, std::size_t device);

}  // namespace headroom::diagnose
