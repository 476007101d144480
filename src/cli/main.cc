// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <new>
#include <span>
#include <system_error>
#include <vector>

#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/command_text.h"
#include "cli/config.h"
#include "cli/declared_verb.h"
#include "cli/hooks.h"
#include "cli/job_marks.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace headroom::cli {

namespace {

// "headroom recordings prune": the commands of a verb that are called so.
std::vector<std::string> parts_called(std::string_view name) {
  std::vector<std::string> found;
  for (const auto& verb : verbs())
    for (const CommandText& part : text_of(verb).commands)
      if (part.name.ends_with(fmt::format(" {}", name))) found.push_back(fmt::format("'{}'", part.name));
  return found;
}

int unknown_verb(std::string_view name) {
  if (const auto parts = parts_called(name); !parts.empty()) {
    say(fmt::format("unknown verb '{}'", name), fmt::format("did you mean {}?", join(parts, " or ")));
    return kExitUsage;
  }
  std::vector<std::string_view> names;
  for (const auto& verb : verbs()) names.push_back(verb.name);
  const auto guess = closest(name, names);
  say(fmt::format("unknown verb '{}'", name),
      guess.empty() ? "headroom --help lists the verbs; headroom run CMD records a command"
                    : fmt::format("did you mean 'headroom {}'?", guess));
  return kExitUsage;
}

int help_of(const Verb& verb, std::span<const std::string> words) {
  put(help_text(part_of(text_of(verb), words), text_options(STDOUT_FILENO)));
  return kExitOk;
}

int wrong_usage(const Verb& verb, const std::string& what, const std::string& hint) {
  say(fmt::format("{}: {}", verb.name, what),
      hint.empty() ? fmt::format("headroom help {} lists the options", verb.name) : hint);
  return kExitUsage;
}

// CLI11's "Could not convert: --pid = abc", for people.
std::string no_number(const CLI::App& app, std::string_view what) {
  constexpr std::string_view kBegin = "Could not convert: ", kBetween = " = ";
  const auto between = what.find(kBetween);
  if (!what.starts_with(kBegin) || between == what.npos) return std::string(what);
  const std::string name(what.substr(kBegin.size(), between - kBegin.size()));
  const std::string_view value = what.substr(between + kBetween.size());
  const CLI::Option* option = app.get_option_no_throw(name);
  if (option != nullptr && option->get_items_expected_max() == 0)
    return fmt::format("{} takes no value, and not '{}'", name, value);
  return fmt::format("{}: '{}' is no number that it can be", name, value);
}

int run_verb(const Verb& verb, std::span<char*> arguments) {
  const auto declared = declare(verb);
  Words words = part_words(*declared, arguments);
  declared->after_dashes = std::move(words.after);
  const std::vector<std::string> own = words.own;
  if (const std::string& name = words.lacking; !name.empty())
    return wrong_usage(verb, fmt::format("{0} needs its file in the same word: {0}=FILE", name),
                       fmt::format("headroom {} {}=FILE CMD...", verb.name, name));
  try {
    std::reverse(words.own.begin(), words.own.end());  // CLI11 takes its vector from the back
    declared->app.parse(words.own);
    apply_config(verb.name, declared->app);
  } catch (const CLI::CallForHelp&) {
    return help_of(verb, own);
  } catch (const CLI::ConversionError& error) {
    return wrong_usage(verb, no_number(declared->app, error.what()), "");
  } catch (const CLI::ParseError& error) {
    if (const auto known = nothing_left_over(declared->app); !known)
      return wrong_usage(verb, known.error().what, known.error().hint);
    return wrong_usage(verb, error.what(), "");
  }
  if (const auto known = nothing_left_over(declared->app); !known)
    return wrong_usage(verb, known.error().what, known.error().hint);
  if (!config() && verb.needs_config) return report_error(config().error());
  return declared->action();
}

int help(std::span<char*> words) {
  if (words.empty()) {
    put(overview(text_options(STDOUT_FILENO)));
    return kExitOk;
  }
  const Verb* verb = find_verb(words[0]);
  if (verb == nullptr) return unknown_verb(words[0]);
  const std::vector<std::string> parts(words.begin() + 1, words.end());
  return help_of(*verb, parts);
}

int run(std::span<char*> arguments) {
  if (arguments.empty()) {
    put(overview(text_options(STDOUT_FILENO)));
    return kExitUsage;
  }
  const std::string_view name = arguments[0];
  if (name == "--help" || name == "-h" || name == "help") return help(arguments.subspan(1));
  if (name == "--version" || name == "-V") {
    print("headroom {}\n", HEADROOM_VERSION);
    return kExitOk;
  }
  if (name == "output-pump") return output_pump(arguments.subspan(1));
  if (name == "finding-watch") return finding_watch();
  const Verb* verb = find_verb(name);
  return verb == nullptr ? unknown_verb(name) : run_verb(*verb, arguments.subspan(1));
}

// It loads the driver's library, starts commands and writes files where its caller says: with another's rights, that
// would be a way to become them.
bool has_other_rights() {
  if (::getauxval(AT_SECURE) == 0) return false;
  say("this program has other rights than its caller (setuid, setgid or file capabilities), and refuses to run so",
      "chmod u-s,g-s or setcap -r take them away; sudo headroom runs as root for those who may");
  return true;
}

}  // namespace

int report_error(const Error& error) {
  say(error.what, error.hint);
  return error.code == Errc::kInvalidInput ? kExitUsage : kExitFailed;
}

}  // namespace headroom::cli

int main(int argc, char** argv) {
  using namespace headroom::cli;
  reserve_standard_files();
  if (has_other_rights()) return kExitFailed;
  try {
    return output_code(run(std::span(argv, static_cast<std::size_t>(argc)).subspan(1)));
  } catch (const std::system_error& error) {
    say(fmt::format("this machine gives no more: {}", error.what()),
        "limits on processes (ulimit -u) and memory (ulimit -v) are worth a look");
    return kExitFailed;
  } catch (const std::bad_alloc&) {
    say("not enough memory for this", "the limit on memory (ulimit -v, or of the job or container) is worth a look");
    return kExitFailed;
  } catch (const std::exception& error) {
    say(fmt::format("internal error: {}", error.what()), "please report this with the command that led to it");
    return kExitBug;
  }
}
