// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "analyze/analysis.h"

namespace headroom::diagnose {

// The idle time in which a batch's tasks had GPUs that no process of theirs was seen on and on which no kernel ran,
// while others computed; taken out of `idle`, which is what is not explained otherwise. Nothing where there is hardly
// any.
[[nodiscard]] std::optional<Finding> given_and_never_used(const Analysis& a, Claims& idle);

}  // namespace headroom::diagnose
