// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "stacks/families.h"

namespace headroom::stacks {

// A user's own rules, which go before those that are built in:
//   [[rule]]
//   family = "loader_fetch"   # one of all_families()
//   file = "mydata/"          # a part of the file's path, or left out
//   function = "next_*"       # the function's short name, with a * at its begin, its end or both; or left out
// kInvalidInput with the place in the file.
[[nodiscard]] Result<std::vector<FamilyRule>> families_from_toml(std::string_view text, const std::string& path);

}  // namespace headroom::stacks
