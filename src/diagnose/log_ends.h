// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "analyze/analysis.h"
#include "diagnose/claims.h"

namespace headroom::diagnose {

// Bytes: with less in use no program has a context of CUDA there, whose own are 60 MiB and more; the driver takes some.
inline constexpr double kLeastContext = 32.0 * (1 << 20);

// After the last kernel of a log, or where hardly one ran any more.
[[nodiscard]] bool at_a_quiet_end(const Analysis& a, std::size_t device, const Slice& slice);
// Not between two jobs, and not after the last.
[[nodiscard]] bool during_work(const Analysis& a, std::size_t device, const Slice& slice);
[[nodiscard]] Claims between_jobs_of(const Analysis& a);
// A log of which nothing is known but that a job started: memory grew to its end, and hardly a kernel ran.
[[nodiscard]] bool only_starts(const Analysis& a);
// "23.8 GiB of 24.0 GiB at most"; "" where it is not known.
[[nodiscard]] std::string most_memory(const Analysis& a, std::size_t device);
// "GPU 0: 23.8 GiB of 24.0 GiB at most", likewise.
[[nodiscard]] std::string memory_words(const Analysis& a, std::size_t device);

}  // namespace headroom::diagnose
