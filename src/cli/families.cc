// SPDX-License-Identifier: Apache-2.0
#include "cli/families.h"

#include <filesystem>

#include "base/regular_file.h"
#include "cli/config.h"
#include "cli/output.h"
#include "cli/verb.h"
#include "stacks/families_file.h"

namespace headroom::cli {

std::string families_path() {
  const std::string config = config_path();
  return config.empty() ? "" : (std::filesystem::path(config).parent_path() / "families.toml").string();
}

Result<std::vector<stacks::FamilyRule>> users_families() {
  constexpr std::size_t kLargest = 1 << 20;
  const std::string path = families_path();
  std::error_code error;
  if (path.empty() || !std::filesystem::exists(path, error)) return std::vector<stacks::FamilyRule>();
  HR_TRY(const std::string text, read_regular(path, kLargest));
  return stacks::families_from_toml(text, path);
}

std::vector<stacks::FamilyRule> users_families_if_good() {
  auto rules = users_families();
  if (rules) return std::move(*rules);
  report_error(within("the families of stacks are those that are built in", rules.error()));
  return {};
}

}  // namespace headroom::cli
