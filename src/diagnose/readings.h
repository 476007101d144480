// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "analyze/analysis.h"
#include "diagnose/claims.h"

// What the rules share that have readings of GPUs and nothing else.
namespace headroom::diagnose {

// Kernels in the last part of the window, and no device without any: nothing hangs then.
[[nodiscard]] bool still_computing(const Analysis& a);
// Idle time of a device in one of its phases that recur, while a job works.
[[nodiscard]] bool in_a_phase(const Analysis& a, std::size_t device, const Slice& slice);
// The share of its time until it fell quiet for good.
[[nodiscard]] double busy_share(const Analysis& a, std::size_t device);
// How far busy time may be off, as a share of the time, where bounds allow for that and nothing else says it.
void say_error(double error, std::vector<std::string>& evidence);
// "GPUs 0 to 3 are low in the same readings (57 of 60): …"; nothing where they are not, or one works alone.
[[nodiscard]] std::vector<std::string> common_words(const Analysis& a);
// How busy `apart` were, and the others.
[[nodiscard]] std::string shares_apart(const Analysis& a, const std::vector<std::size_t>& apart);

// Where nothing tells one cause from another, all idle time that nothing explains may be one's: what several findings
// say of it, what a process that is not looked at did after its last kernel, be it the last pause of many, and what no
// reading covers.
// Returns all that time.
[[nodiscard]] Claims gains_of_all_unseen(const Analysis& a, Finding& finding, std::string condition);
// What jobs that have some of the GPUs to themselves gain at most, by what is `open` there, beside what one job of all
// does.
void say_both_ways(const Analysis& a, const std::vector<std::size_t>& apart, const Claims& open, Finding& finding);
// Where users tell the jobs apart, each has a bound of its own, by what is `open` on its GPUs.
void say_by_job(const Analysis& a, const std::vector<std::vector<std::size_t>>& jobs, const Claims& open,
                Finding& finding);

}  // namespace headroom::diagnose
