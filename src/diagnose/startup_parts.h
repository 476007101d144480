// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "analyze/analysis.h"
#include "diagnose/claims.h"

// What time before a first kernel was, beside loading and compiling that stacks or programs tell.
namespace headroom::diagnose {

// Without stacks: what is compiled for a GPU is so by programs that are started, or once its process is on the GPU.
// Where neither was, and it loaded for most of its CPU time, it is code or data, and no compiler inside the process.
void loads_unseen(const Analysis& a, Nanos compiled, Finding& finding);

// Somebody else had much of the memory of its GPU for most of the start, while the job slept: it may have tried again
// until there was room.
void may_wait_for_room(const Analysis& a, Finding& finding);

// It was at a terminal, or on a pipe that no process which it started has the other end of: what it shall do first has
// yet to come from there.
void may_wait_for_input(const Analysis& a, Finding& finding);

// None of its threads ran, nor a process of its own, and it was seen at no file or connection: it waited, as for a
// lock, and loaded nothing.
void may_only_wait(const Analysis& a, Finding& finding);

// Of time before the first kernel that in which a process listened at its own port: by its stacks it waited, and by its
// waits for who connects.
[[nodiscard]] Claims before_who_asks(const Analysis& a, const Claims& startup);
// Likewise that in which it waited at a terminal, at no code: an interpreter at its prompt.
[[nodiscard]] Claims before_who_types(const Analysis& a, const Claims& startup);
[[nodiscard]] Finding waits_for_who_types(const Analysis& a, Claims claims);
[[nodiscard]] Finding waits_for_who_asks(const Analysis& a, Claims claims);

}  // namespace headroom::diagnose
