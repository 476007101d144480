// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "analyze/analysis.h"
#include "diagnose/claims.h"

// Idle time in code of the process on a GPU: whether it ran then, and what its stacks make of that.
namespace headroom::diagnose {

// Whether in the claimed time hardly any of its threads ran, or wanted to ...
[[nodiscard]] bool all_asleep(const Analysis& a, const HostSummary& s, const Claims& claims);
// ... or its main one hardly did ...
[[nodiscard]] bool main_asleep(const Analysis& a, const HostSummary& s, const Claims& claims);
// ... or they slept for more of it than they can have run in.
[[nodiscard]] bool mostly_asleep(const Analysis& a, const HostSummary& s, const Claims& claims);
// Of the claimed time what lies in functions, each with a good part of the whole time, in which none ran.
[[nodiscard]] Claims asleep_in(const Analysis& a, const Claims& claims);

// The share of the claimed time in which its threads ran, or its main thread wanted to, if all that they did so in
// these readings was in it.
[[nodiscard]] double ran_at_most(const HostSummary& s, const Claims& claims);

// "The GPU waits for its data"; in pauses it pauses.
[[nodiscard]] std::string gpu_waits(bool in_pauses, std::string_view why);

// Whether stacks show that most of it is code that no step needs: it was seen at some times only.
[[nodiscard]] bool at_times_only(const Analysis& a, const Claims& claims);

// Says where it waits for its kernels, where it does so in a good part of the looks. Gives whether it said so.
bool say_that_it_waits_for_kernels(const Analysis& a, Finding& finding);

// Makes the finding one about the code that stacks have named.
void follow_the_stacks(const Analysis& a, const HostSummary& s, bool in_pauses, Finding& finding);

}  // namespace headroom::diagnose
