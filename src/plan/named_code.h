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

// Of the time that the finding claims, the part that the code takes which stacks name; 0 where they name none.
[[nodiscard]] double share_of_code(const Finding& finding);

// The part that code of such a share takes of all that may go with the finding: what is not claimed may be that code's.
[[nodiscard]] double share_of_all_time(const StepModel::Claimed& claimed, double share);

}  // namespace headroom::planning
