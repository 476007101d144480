// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "analyze/analysis.h"
#include "model/finding.h"

namespace headroom::diagnose {

// Whether nearly all that a place keeps its device waiting between the first kernel and the last is of this account: a
// function that is at several things has no one role, and to change it changes all of them.
[[nodiscard]] bool is_of_one_account(const Analysis& a, std::int32_t where, Account account);

// Says in a finding of which part of the training loop the code is that most of its time went to, as far as its stacks
// and its times tell (analyze/loop_roles.h); what its account tells is in its title.
void tell_the_role(const Analysis& a, Finding& finding);

}  // namespace headroom::diagnose
