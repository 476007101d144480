// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/cli11.h"
#include "cli/output.h"

namespace headroom::cli {

// Exit codes of every verb (`headroom run CMD` returns CMD's own).
inline constexpr int kExitOk = 0, kExitFailed = 1, kExitUsage = 2, kExitBug = 70, kExitInterrupted = 130;

// Runs after the command line was parsed; returns the exit code.
using Action = std::function<int()>;

// One verb: a row of the table in verbs.cc. `declare` adds the verb's options to `app` and returns what to run.
// Of a verb with a command after a bare "--" that command reaches it unparsed in `after_dashes`; of a verb that takes a
// command, everything from its first word on, too. Of others what follows "--" are names, also with a dash in front.
struct VerbInput {
  CLI::App& app;
  const std::vector<std::string>& after_dashes;
};
struct Verb {
  std::string_view name;
  std::string_view summary;
  Action (*declare)(VerbInput input);
  std::string_view usage;     // a line per form: what follows "headroom NAME"
  std::string_view examples;  // a line per example: what follows "headroom "
  bool takes_command = false;
  bool command_after_dashes = takes_command;
  bool hidden = false;
  bool needs_config = true;  // where the configuration cannot be used, this verb says so and ends
};
[[nodiscard]] std::span<const Verb> verbs();  // in the order in which a newcomer meets them
[[nodiscard]] const Verb* find_verb(std::string_view name);

// Says what went wrong on standard error; returns the exit code that suits the error.
int report_error(const Error& error);

// One function per verb, each in its own file; verbs.cc holds the table.

Action declare_ab(VerbInput input);
Action declare_batch(VerbInput input);
Action declare_compare(VerbInput input);
Action declare_complete(VerbInput input);
Action declare_completion(VerbInput input);
Action declare_devices(VerbInput input);
Action declare_doctor(VerbInput input);
Action declare_export(VerbInput input);
Action declare_fleet(VerbInput input);
Action declare_import(VerbInput input);
Action declare_manual(VerbInput input);
Action declare_merge(VerbInput input);
Action declare_plan(VerbInput input);
Action declare_probe(VerbInput input);
Action declare_record(VerbInput input);
Action declare_recordings(VerbInput input);
Action declare_report(VerbInput input);
Action declare_run(VerbInput input);
Action declare_serve(VerbInput input);
Action declare_sim(VerbInput input);
Action declare_sim_job(VerbInput input);
Action declare_stacks(VerbInput input);
Action declare_study(VerbInput input);
Action declare_top(VerbInput input);
Action declare_verify(VerbInput input);
Action declare_why(VerbInput input);

}  // namespace headroom::cli
