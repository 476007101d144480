// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <span>
#include <vector>

#include "base/strings.h"
#include "cli/verbs.h"

namespace headroom::cli {

namespace {

// In the order in which a newcomer meets them. Add a verb: its file, verbs.h, and a row here.
const std::vector<Verb> kVerbs{
    {"run", "record a command and explain where its GPU time went", declare_run},
    {"record", "record what is already running", declare_record},
    {"batch", "run many tasks over all GPUs, packed, with a journal; resumable", declare_batch},
    {"why", "say where a recording's GPU time went, and why", declare_why},
    {"devices", "show the GPUs of this machine and who uses them", declare_devices},
    {"recordings", "list, prune or remove what has been recorded", declare_recordings},
    {"import", "turn a log of nvidia-smi, dmon or another monitor into a recording", declare_import},
    {"export", "write a recording as CSV, JSONL, a Chrome/Perfetto trace, or a whole copy", declare_export},
    {"sim", "run a command on virtual GPUs", declare_sim},
    {"sim-job", "a virtual training program, for use inside sim", declare_sim_job},
    {"doctor", "say what can and cannot be seen here, and what to do about it", declare_doctor},
};

void print_help() {
  fmt::print(
      "headroom {}: where every GPU-second of your training went, and what to change\n\n"
      "usage: headroom VERB [options]\n\n",
      HEADROOM_VERSION);
  for (const auto& verb : kVerbs) fmt::print("  {:<12}{}\n", verb.name, verb.summary);
  fmt::print(
      "\nheadroom VERB --help says more. Exit codes: 0 ok, 1 failed, 2 usage, 70 internal bug,\n"
      "130 interrupted; `headroom run -- CMD` returns CMD's own.\n");
}

int unknown_verb(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& verb : kVerbs) names.push_back(verb.name);
  fmt::print(stderr, "headroom: unknown verb '{}'\n", name);
  const auto guess = closest(name, names);
  if (guess.empty())
    fmt::print(stderr, "  headroom --help lists the verbs\n");
  else
    fmt::print(stderr, "  did you mean 'headroom {}'?\n", guess);
  return kExitUsage;
}

int run_verb(const Verb& verb, std::span<char*> arguments) {
  std::vector<std::string> own, after;
  bool dashes = false;
  for (const char* argument : arguments) {
    if (dashes)
      after.emplace_back(argument);
    else if (std::string_view(argument) == "--")
      dashes = true;
    else
      own.emplace_back(argument);
  }
  CLI::App app{std::string(verb.summary), fmt::format("headroom {}", verb.name)};
  const Action action = verb.declare({app, after, dashes});
  try {
    std::reverse(own.begin(), own.end());  // CLI11 takes its vector from the back
    app.parse(own);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "headroom {}: {}\n  headroom {} --help lists the options\n", verb.name, error.what(), verb.name);
    return kExitUsage;
  }
  return action();
}

int run(std::span<char*> arguments) {
  if (arguments.empty() || std::string_view(arguments[0]) == "--help" || std::string_view(arguments[0]) == "-h" ||
      std::string_view(arguments[0]) == "help") {
    print_help();
    return arguments.empty() ? kExitUsage : kExitOk;
  }
  const std::string_view name = arguments[0];
  if (name == "--version" || name == "-V") {
    fmt::print("headroom {}\n", HEADROOM_VERSION);
    return kExitOk;
  }
  const auto verb = std::find_if(kVerbs.begin(), kVerbs.end(), [&](const auto& v) { return v.name == name; });
  return verb == kVerbs.end() ? unknown_verb(name) : run_verb(*verb, arguments.subspan(1));
}

}  // namespace

int report_error(const Error& error) {
  fmt::print(stderr, "headroom: {}\n", error.what);
  if (!error.hint.empty()) fmt::print(stderr, "  {}\n", error.hint);
  return error.code == Errc::kInvalidInput ? kExitUsage : kExitFailed;
}

}  // namespace headroom::cli

int main(int argc, char** argv) {
  try {
    return headroom::cli::run(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
  } catch (const std::exception& error) {
    fmt::print(stderr, "headroom: internal error: {}\n  please report this with the command that led to it\n",
               error.what());
    return headroom::cli::kExitBug;
  }
}
