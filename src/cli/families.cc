// SPDX-License-Identifier: Apache-2.0
#include "cli/families.h"

#include <filesystem>

#include "base/fd.h"
#include "cli/config.h"
#include "cli/output.h"
#include "cli/verb.h"
#include "stacks/families_file.h"

namespace headroom::cli {

Result<std::vector<stacks::FamilyRule>> users_families() {
  constexpr std::size_t kLargest = 1 << 20;
  const std::string config = config_path();
  if (config.empty()) return std::vector<stacks::FamilyRule>();
  const std::string path = (std::filesystem::path(config).parent_path() / "families.toml").string();
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::vector<stacks::FamilyRule>();
  HR_TRY(const std::string text, read_file(path, kLargest));
  return stacks::families_from_toml(text, path);
}

std::vector<stacks::FamilyRule> users_families_if_good() {
  auto rules = users_families();
  if (rules) return std::move(*rules);
  report_error(within("the families of stacks are those that are built in", rules.error()));
  return {};
}

}  // namespace headroom::cli
