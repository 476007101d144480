// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "analyze/analysis.h"
#include "model/finding.h"

namespace headroom::diagnose {

// Says in a finding of which part of the training loop the code is that most of its time went to, as far as its stacks
// and its times tell (analyze/loop_roles.h); what its account tells is in its title.
void tell_the_role(const Analysis& a, Finding& finding);

}  // namespace headroom::diagnose
