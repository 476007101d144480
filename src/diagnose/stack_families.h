// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "analyze/analysis.h"
#include "diagnose/claims.h"

// What the frames of libraries say about the code that keeps a GPU waiting (stacks::Family).
namespace headroom::diagnose {

// Where stacks name a family that is a cause of its own, rules of the user's among them, the finding is about that.
void follow_the_family(const Analysis& a, const HostSummary& s, bool in_pauses, Finding& finding);

// Where most of its stacks are in code that uses no GPU, neither launches nor copies take the time; nor do waits for
// kernels, but after each of them such code runs beside none.
void follow_the_plain(const Analysis& a, const HostSummary& s, Finding& finding);

}  // namespace headroom::diagnose
