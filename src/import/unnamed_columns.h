// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// What to give to --columns for rows without a header, by the cells of one of them: the names that its cells show, and
// where a number may be any reading a letter, with that number beside it.
[[nodiscard]] std::string columns_hint(const std::vector<std::string_view>& row);

}  // namespace headroom
