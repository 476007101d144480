// SPDX-License-Identifier: Apache-2.0
#include "stacks/families_file.h"

#include <algorithm>

#include "base/strings.h"
#include "base/toml_table.h"

namespace headroom::stacks {

namespace {

Result<Family> family_named(const TomlTable& rule) {
  HR_TRY(const std::string name, rule.need_text("family"));
  const auto all = all_families();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const FamilyInfo& family) { return family.name == name; });
  if (found != all.end() && found->id != Family::kNone) return found->id;
  std::vector<std::string> names;
  for (const FamilyInfo& family : all)
    if (family.id != Family::kNone) names.emplace_back(family.name);
  return tl::unexpected(rule.wrong("family", "is no family of stacks", "one of " + join(names, ", ")));
}

}  // namespace

Result<std::vector<FamilyRule>> families_from_toml(std::string_view text, const std::string& path) {
  HR_TRY(const TomlTable file, TomlTable::parse(text, path));
  HR_TRYV(file.only({"rule"}));
  HR_TRY(const std::vector<TomlTable> tables, file.tables("rule"));
  std::vector<FamilyRule> rules;
  for (const TomlTable& table : tables) {
    HR_TRYV(table.only({"family", "file", "function"}));
    FamilyRule rule;
    HR_TRY(rule.family, family_named(table));
    HR_TRY(const auto file_part, table.text("file"));
    HR_TRY(const auto function, table.text("function"));
    rule.file = file_part.value_or("");
    rule.function = function.value_or("");
    if (rule.file.empty() && (rule.function.empty() || rule.function == "*"))
      return tl::unexpected(table.wrong("function", "and 'file' leave every stack open",
                                        "name a part of the file's path, a function, or both"));
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace headroom::stacks
