// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>

#include "plan/candidates.h"

namespace headroom::planning {

// Where several causes look the same and stacks name one place of most of the time: the change of that code helps
// whichever of them it is. Nothing elsewhere.
[[nodiscard]] std::optional<Candidate> named_code(const Explanation& e, std::size_t finding);

}  // namespace headroom::planning
