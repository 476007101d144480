// SPDX-License-Identifier: Apache-2.0
#include "cli/config.h"

#include <unistd.h>
#include <algorithm>
#include <array>
#include <filesystem>

#include "base/answers.h"
#include "base/duration.h"
#include "base/regular_file.h"
#include "base/strings.h"
#include "base/toml_table.h"
#include "cli/declared_verb.h"
#include "cli/environment.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "stacks/families_file.h"

namespace headroom::cli {

namespace {

// Not those that delete.
constexpr std::array<std::string_view, 7> kVerbsWithDefaults{"run",    "record", "batch", "why",
                                                             "import", "export", "sim"};
constexpr std::size_t kLargest = 1 << 20;

// TOML keys may have underscores: "no_gpu" is --no-gpu, too.
std::string option_name(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

Result<Setting> setting_of(const TomlTable& table, std::string_view verb, const std::string& key, const CLI::App& app) {
  Setting setting{.verb = std::string(verb), .option = option_name(key), .values = {}};
  const CLI::Option* option = app.get_option_no_throw("--" + setting.option);
  HR_CHECK(option != nullptr, "only options that are known");
  if (option->get_items_expected_max() == 0) {
    HR_TRY(const auto truth, table.boolean(key));
    if (*truth) setting.values = {"true"};
    return setting;
  }
  if (auto values = table.scalars(key); values && option->get_items_expected_max() > 1) {
    setting.values = std::move(*values);
    return setting;
  }
  HR_TRY(const std::string value, table.scalar(key));
  if (option->get_type_name() == "DURATION") {
    if (const auto duration = parse_duration(value); !duration)
      return tl::unexpected(table.wrong(key, "is no duration: " + duration.error().what, duration.error().hint));
  }
  setting.values = {value};
  return setting;
}

// An error for a setting that the command line would refuse, with the place in the file.
Result<void> check_values(const TomlTable& table, const std::string& key, const Setting& setting, CLI::App& app) {
  CLI::Option* option = app.get_option_no_throw("--" + setting.option);
  try {
    for (const auto& value : setting.values) option->add_result(value);
    option->run_callback();
  } catch (const CLI::ParseError& error) {
    std::string_view what = error.what();
    if (const std::string named = fmt::format("--{}: ", setting.option); what.starts_with(named))
      what.remove_prefix(named.size());
    return tl::unexpected(table.wrong(key, fmt::format("cannot be that: {}", what), ""));
  }
  return {};
}

Result<void> read_verb(const TomlTable& file, std::string_view verb, Config& config) {
  HR_TRY(const auto table, file.table(verb));
  if (!table) return {};
  const auto declared = declare(*find_verb(verb));
  std::vector<std::string> known;
  for (const CLI::Option* option : declared->app.get_options()) {
    if (option->get_group().empty() || option == declared->app.get_help_ptr()) continue;
    for (const auto& name : option->get_lnames()) known.push_back(name);
  }
  const std::size_t as_typed = known.size();
  for (std::size_t i = 0; i < as_typed; ++i) {
    std::string underscored = known[i];
    std::replace(underscored.begin(), underscored.end(), '-', '_');
    if (underscored != known[i]) known.push_back(underscored);
  }
  HR_TRYV(table->only({known.begin(), known.end()}));
  for (const auto& key : table->keys()) {
    HR_TRY(Setting setting, setting_of(*table, verb, key, declared->app));
    if (setting.values.empty()) continue;
    HR_TRYV(check_values(*table, key, setting, declared->app));
    config.lines.push_back(fmt::format("{}.{} = {}", verb, setting.option, join(setting.values, ", ")));
    config.options.push_back(std::move(setting));
  }
  return {};
}

Result<void> read_general(const TomlTable& file, Config& config) {
  constexpr std::int64_t kFewest = 40, kMost = 1000;  // columns
  HR_TRY(config.recordings, file.text("recordings"));
  if (config.recordings) {
    std::string& folder = *config.recordings;
    if (folder.starts_with("~/")) folder = environment("HOME").value_or("") + folder.substr(1);
    if (!folder.starts_with('/'))
      return tl::unexpected(file.wrong("recordings", "is no absolute path", "write \"/data/recordings\" or \"~/…\""));
    config.lines.push_back("recordings = " + folder);
  }
  HR_TRY(const auto width, file.integer("width", kFewest, kMost));
  if (width) {
    config.width = static_cast<std::size_t>(*width);
    config.lines.push_back(fmt::format("width = {}", *width));
  }
  HR_TRY(const auto colour, file.text("colour"));
  if (!colour) return {};
  if (*colour != "auto" && *colour != "always" && *colour != "never")
    return tl::unexpected(file.wrong("colour", fmt::format("is '{}'", *colour), "auto, always or never"));
  if (*colour != "auto") config.colour = *colour == "always";
  config.lines.push_back("colour = " + *colour);
  return {};
}

Result<Config> read_config() {
  Config config{.path = config_path()};
  if (config.path.empty()) return config;
  HR_TRYV(answers(config.path));
  if (::access(config.path.c_str(), F_OK) != 0) return config;
  config.there = true;
  HR_TRY(const std::string text, read_regular(config.path, kLargest));
  HR_TRY(const TomlTable file, TomlTable::parse(text, config.path));
  std::vector<std::string_view> known{"recordings", "width", "colour"};
  known.insert(known.end(), kVerbsWithDefaults.begin(), kVerbsWithDefaults.end());
  HR_TRYV(file.only(known));
  HR_TRYV(read_general(file, config));
  for (const auto verb : kVerbsWithDefaults) HR_TRYV(read_verb(file, verb, config));
  return config;
}

}  // namespace

std::string config_path() {
  // The XDG rules: a path that is not absolute is to be ignored.
  const auto folder = environment("XDG_CONFIG_HOME"), home = environment("HOME");
  if (folder && folder->starts_with('/')) return *folder + "/headroom/config.toml";
  return home && home->starts_with('/') ? *home + "/.config/headroom/config.toml" : "";
}

const Result<Config>& config() {
  static const Result<Config> read = read_config();
  return read;
}

void apply_config(std::string_view verb, CLI::App& app) {
  if (!config() || !app.get_subcommands().empty()) return;
  for (const Setting& setting : config()->options) {
    if (setting.verb != verb) continue;
    CLI::Option* option = app.get_option_no_throw("--" + setting.option);
    if (option->count() > 0) continue;
    for (const auto& value : setting.values) option->add_result(value);
    option->run_callback();
  }
}

std::string families_path() {
  const std::string config = config_path();
  return config.empty() ? "" : (std::filesystem::path(config).parent_path() / "families.toml").string();
}

Result<std::vector<stacks::FamilyRule>> users_families() {
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
