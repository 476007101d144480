// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>
#include <vector>

namespace headroom {

// What a program printed of a list: "[97, 98, 96]", "(97, 98)", NumPy's "[97. 98. 96.]", "['97 %', '98 %']": the items;
// none for other texts, such as "[N/A]".
[[nodiscard]] std::vector<std::string_view> list_items(std::string_view cell);
// The same by a first look, which costs little.
[[nodiscard]] bool begins_list(std::string_view cell);

}  // namespace headroom
