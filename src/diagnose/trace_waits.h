// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "analyze/analysis.h"
#include "diagnose/claims.h"

// What a profiler saw a GPU wait for: the parts of rules_traces.cc.
namespace headroom::diagnose {

// What would overturn what a trace says.
inline constexpr const char* kOtherSteps =
    "a trace of other steps in which it does not recur: profilers also slow the host down";
// A finding that rests on a trace alone.
[[nodiscard]] Finding trace_finding(Claims claims);

// Nothing in an export of Nsight Systems says that the program is one of Python, whose frameworks have such names.
[[nodiscard]] bool may_be_no_python(const Analysis& a);
// What helps where launches come late.
[[nodiscard]] std::string fewer_launches(const Analysis& a);

// How much of the time lies in waits of at most `longest`; what follows on the same device is one wait.
[[nodiscard]] Nanos in_short_waits(const Claims& claims, Nanos longest);

// trace_copies.cc: what time is of in which the GPU copies and no kernel runs, by where the copies go, and what there
// is to gain: they overlap with kernels; those within the GPU are better left out.
void name_copies(const Analysis& a, Finding& finding);
void gains_of_copies(const Analysis& a, Finding& finding);

// trace_gaps.cc: the thread that launches next is in no operator and no call, or what was launched has not begun.
[[nodiscard]] std::vector<Finding> unexplained_waits(const Analysis& a);

}  // namespace headroom::diagnose
