// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <string_view>

#include "plan/candidates.h"

namespace headroom::planning {

inline constexpr std::string_view kNamedCode = "named_code";  // its id

// Where several causes look the same and stacks name one place of most of the time: the change of that code helps
// whichever of them it is. Nothing elsewhere.
[[nodiscard]] std::optional<Candidate> named_code(const Explanation& e, std::size_t finding);

}  // namespace headroom::planning
