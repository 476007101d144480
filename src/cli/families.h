// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "stacks/families.h"

namespace headroom::cli {

// Where they would be; "" where there is no folder for it.
[[nodiscard]] std::string families_path();
// The rules of $XDG_CONFIG_HOME/headroom/families.toml (docs/stacks.md); none where there is no such file.
[[nodiscard]] Result<std::vector<stacks::FamilyRule>> users_families();
// Likewise, for a report that must come: of a file that cannot be used, why is said, and nothing of it is used.
[[nodiscard]] std::vector<stacks::FamilyRule> users_families_if_good();

}  // namespace headroom::cli
