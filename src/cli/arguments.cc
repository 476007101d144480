// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/duration.h"
#include "base/strings.h"
#include "base/visible.h"
#include "cli/declared_verb.h"
#include "cli/environment.h"
#include "compare/requirements.h"
#include "import/import.h"

namespace headroom::cli {

namespace {

bool is_option(std::string_view word) { return word.size() > 1 && word.front() == '-'; }

// "--json=FILE": where a value could be left out or be a command's first word, no word after the option is its value.
bool value_is_joined(const CLI::Option& option) { return option.get_type_name().starts_with('='); }

bool takes_value(const CLI::App& app, const std::string& name) {
  const CLI::Option* option = app.get_option_no_throw(name);
  return option != nullptr && option->get_items_expected_max() > 0 && !value_is_joined(*option);
}

bool lacks_value(const CLI::App& app, std::string_view word) {
  if (word.ends_with('=')) word.remove_suffix(1);
  const CLI::Option* option = app.get_option_no_throw(std::string(word));
  return option != nullptr && value_is_joined(*option);
}

// Whether the option's value is the word after it: not in --name=value, -n5, nor of a flag.
bool value_follows(const CLI::App& app, const std::string& word) {
  if (word.starts_with("--")) return word.find('=') == std::string::npos && takes_value(app, word);
  for (std::size_t i = 1; i < word.size(); ++i)
    if (takes_value(app, std::string{'-', word[i]})) return i + 1 == word.size();
  return false;
}

// Whether the word behind the one at `i` can only be its value: a command that stands behind dashes is none of the
// words before these, and what follows the value is an option or the dashes.
bool only_a_value_follows(std::span<char*> arguments, std::size_t i) {
  if (i + 2 >= arguments.size() || is_option(arguments[i + 1]) || !is_option(arguments[i + 2])) return false;
  const auto rest = arguments.subspan(i + 2);
  return std::any_of(rest.begin(), rest.end(), [](const char* word) { return std::string_view(word) == "--"; });
}

const CLI::App& innermost(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : innermost(*parsed.front());
}

std::vector<std::string> names_of_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty())
      for (const auto& name : option->get_lnames()) names.push_back(name);
  return names;
}

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  return names;
}

// Of other verbs, or other tools, and far from what is meant here by their letters.
constexpr std::array kSameMeaning{std::pair<std::string_view, std::string_view>{"for", "duration"},
                                  std::pair<std::string_view, std::string_view>{"duration", "for"}};

std::string guess_of(std::string_view word, const std::vector<std::string>& names) {
  for (const auto& [other, here] : kSameMeaning)
    if (word == other && std::find(names.begin(), names.end(), here) != names.end()) return std::string(here);
  return std::string(closest(word, {names.begin(), names.end()}));
}

}  // namespace

CLI::Validator duration_check() {
  const auto wrong = [](const std::string& text) -> std::string {
    const auto duration = parse_duration(text);
    return duration ? "" : fmt::format("{}; {}", duration.error().what, duration.error().hint);
  };
  return {wrong, ""};
}

void declare_window(CLI::App& app, WindowOptions& options, const std::string& what) {
  app.add_option("--from", options.from, what + ", from the recording's start (default 0s)")
      ->type_name("DURATION")
      ->check(duration_check());
  app.add_option("--to", options.to, "end of it (default: the recording's end)")
      ->type_name("DURATION")
      ->check(duration_check());
}

Result<std::optional<std::pair<Nanos, Nanos>>> window_of(const WindowOptions& options, Nanos span) {
  if (options.from.empty() && options.to.empty()) return std::nullopt;
  HR_TRY(const Nanos from, options.from.empty() ? Result<Nanos>(0) : parse_duration(options.from));
  HR_TRY(const Nanos to, options.to.empty() ? Result<Nanos>(span) : parse_duration(options.to));
  if (from < std::min(span, to)) return std::pair(from, std::min(span, to));
  return fail(Errc::kInvalidInput, "--from and --to leave no time",
              fmt::format("the recording covers 0s to {:.3f}s", seconds(span)));
}

Words part_words(const DeclaredVerb& declared, std::span<char*> arguments) {
  Words words;
  bool value = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string word = arguments[i];
    const bool dashes = word == "--" && declared.verb.command_after_dashes;
    if (dashes || (declared.verb.takes_command && !value && !is_option(word))) {
      const auto after = arguments.subspan(dashes ? i + 1 : i);
      words.after.assign(after.begin(), after.end());
      return words;
    }
    if (!value && lacks_value(declared.app, word)) {
      if (!word.ends_with('=') && only_a_value_follows(arguments, i)) {
        words.own.push_back(word + "=" + arguments[++i]);
        continue;
      }
      words.lacking = word.substr(0, word.find('='));
    }
    value = !value && is_option(word) && value_follows(declared.app, word);
    words.own.push_back(word);
  }
  return words;
}

Result<void> nothing_left_over(const CLI::App& app) {
  std::vector<std::string> left = app.remaining(true);
  std::erase(left, "--");  // CLI11 counts what parts options from names
  if (left.empty()) return {};
  const CLI::App& command = innermost(app);
  const auto option = std::find_if(left.begin(), left.end(), [](const auto& word) { return is_option(word); });
  if (option != left.end()) {
    const std::string name = option->substr(0, option->find('='));
    const std::string guess =
        guess_of(name.substr(std::min(name.size(), name.find_first_not_of('-'))), names_of_options(command));
    return fail(Errc::kInvalidInput, fmt::format("there is no option {}", name),
                guess.empty() ? "" : fmt::format("did you mean --{}?", guess));
  }
  const auto refuse = [&](std::string hint) {
    return fail(Errc::kInvalidInput, fmt::format("not expected: {}", typed_line(left)), std::move(hint));
  };
  if (const std::string guess = guess_of(left.front(), names_of_commands(command)); !guess.empty())
    return refuse(fmt::format("did you mean '{}'?", guess));
  const auto lists =
      command.get_options([](const CLI::Option* one) { return one->get_delimiter() != 0 && one->count() > 0; });
  return refuse(lists.empty()
                    ? ""
                    : fmt::format("several values of {0} are parted by commas: {0} A,B", lists.front()->get_name()));
}

void declare_require(CLI::App& app, std::vector<std::string>& given, const char* what) {
  app.add_option("--require", given, what)->type_name("FIGURE<LIMIT")->allow_extra_args(false);
}

Result<std::vector<Requirement>> read_requirements(const std::vector<std::string>& given) {
  std::vector<Requirement> requirements;
  for (const std::string& text : given) {
    HR_TRY(requirements.emplace_back(), compare::parse_requirement(text));
  }
  return requirements;
}

Result<std::vector<JudgedRequirement>> judged_of(const std::vector<Requirement>& requirements,
                                                 const std::vector<Figure>& figures) {
  std::vector<JudgedRequirement> answers = compare::judged(requirements, figures);
  for (const JudgedRequirement& answer : answers)
    if (figure_info(answer.requirement.name) == nullptr &&
        std::none_of(figures.begin(), figures.end(),
                     [&](const Figure& figure) { return figure.name == answer.requirement.name; }))
      return fail(Errc::kInvalidInput, fmt::format("--require '{}': {}", answer.requirement.text, answer.why_not),
                  fmt::format("known besides are {}", compare::known_figures()));
  return answers;
}

namespace {

// The C library takes a zone that it does not know for UTC, without a word: so its file is looked for.
bool is_zone(const std::string& name) {
  const bool plain = !name.empty() && std::isalpha(static_cast<unsigned char>(name.front())) != 0 &&
                     name.find("..") == std::string::npos && std::all_of(name.begin(), name.end(), [](unsigned char c) {
                       return std::isalnum(c) != 0 || c == '/' || c == '_' || c == '-' || c == '+';
                     });
  std::error_code ignored;
  return plain &&
         std::filesystem::is_regular_file(environment("TZDIR").value_or("/usr/share/zoneinfo") + "/" + name, ignored);
}

// This process has another zone for as long as it lives.
class OtherZone {
 public:
  explicit OtherZone(const std::string& name) : before_(environment("TZ")) { set(name); }
  ~OtherZone() { set(before_); }
  OtherZone(const OtherZone&) = delete;
  OtherZone& operator=(const OtherZone&) = delete;

 private:
  static void set(const std::optional<std::string>& name) {
    if (name)
      ::setenv("TZ", name->c_str(), 1);
    else
      ::unsetenv("TZ");
    ::tzset();
  }
  std::optional<std::string> before_;
};

}  // namespace

Result<Nanos> offset_of_zone(const std::string& zone, Nanos shown) {
  if (const auto known = utc_offset_of(zone)) return (*known)(shown / kSecond) * kSecond;
  if (!is_zone(zone))
    return fail(Errc::kInvalidInput, fmt::format("'{}' is no time zone", zone),
                "write UTC, local, an offset such as +09:00, or a name such as Asia/Tokyo");
  const OtherZone other(zone);
  HR_TRY(const auto local, utc_offset_of("local"));
  return local(shown / kSecond) * kSecond;
}

}  // namespace headroom::cli
