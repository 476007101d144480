// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/cli11.h"
#include "stacks/families.h"

// Defaults of a person, from $XDG_CONFIG_HOME/headroom/config.toml (docs/config.md). The command line wins.
namespace headroom::cli {

struct Setting {
  std::string verb, option;  // "run", "interval"
  std::vector<std::string> values;
};

struct Config {
  std::string path;  // where the file is looked for; "" where no folder is known
  bool there = false;
  std::optional<std::string> recordings;  // the folder where they lie
  std::optional<bool> colour;             // nothing: where there is a terminal
  std::optional<std::size_t> width;
  std::vector<Setting> options;
  std::vector<std::string> lines;  // what is set, for people: "run.interval = 200ms"
};

// Read once. Where the file cannot be used, nothing of it is, and only doctor and help go on.
[[nodiscard]] const Result<Config>& config();
// Where it is looked for, readable or not.
[[nodiscard]] std::string config_path();

// Gives the options of a verb that were not on its command line their defaults.
void apply_config(std::string_view verb, CLI::App& app);

// Where they would be; "" where there is no folder for it.
[[nodiscard]] std::string families_path();
// The rules of $XDG_CONFIG_HOME/headroom/families.toml (docs/stacks.md); none where there is no such file.
[[nodiscard]] Result<std::vector<stacks::FamilyRule>> users_families();
// Likewise, for a report that must come: of a file that cannot be used, why is said, and nothing of it is used.
[[nodiscard]] std::vector<stacks::FamilyRule> users_families_if_good();

}  // namespace headroom::cli
