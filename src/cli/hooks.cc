// SPDX-License-Identifier: Apache-2.0
#include "cli/hooks.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/output.h"
#include "live/hook.h"

namespace headroom::cli {

namespace {

constexpr Nanos kHookPatience = 30 * kSecond;  // for all that one option runs; docs/notify.md says it

void complain(std::string_view option, const HookEnd& end, std::size_t left) {
  std::string text =
      fmt::format("{}: {}", option, end.trouble.empty() ? "a signal came" : "the command " + end.trouble);
  if (left > 0) text += fmt::format("; {} more {} not told", left, left == 1 ? "finding is" : "findings are");
  say(text);
}

// Says the first thing that goes wrong, and what ends it. False where a signal came.
bool call(std::string_view option, const std::string& command, const std::vector<std::string>& documents,
          Signals& signals) {
  const Nanos until = boottime_now() + kHookPatience;
  bool said = false;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const HookEnd end = run_hook(command, documents[i], until, signals);
    const bool stops = end.out_of_time || end.by_signal;
    const std::size_t left = stops ? documents.size() - i - 1 : 0;
    if (left > 0 || (!end.trouble.empty() && (stops || !said))) complain(option, end, left);
    said = said || !end.trouble.empty();
    if (stops) return !end.by_signal;
  }
  return true;
}

}  // namespace

void declare_hooks(CLI::App& app, Hooks& hooks) {
  app.add_option(
         "--on-end", hooks.on_end,
         "at the end run this shell command, with one JSON document on its stdin: how it went, the headline, the "
         "first finding; 30 s at most; its outcome changes nothing")
      ->type_name("CMD");
  app.add_option(
         "--on-finding", hooks.on_finding,
         "likewise for each finding: once it is sure and has cost a minute, while the work goes on, at once what "
         "stands still, and again when that is over; the others at the end, and those that no longer hold")
      ->type_name("CMD");
  declare_finding_looks(app, hooks.looks);
}

void call_hooks(const Hooks& hooks, const report::EndNotice& end, const Explanation* explanation,
                const std::vector<report::ToldFinding>& told) {
  if (!hooks.any()) return;
  auto signals = Signals::block({SIGINT, SIGTERM, SIGHUP, SIGQUIT});
  if (!signals) return say(fmt::format("--on-end, --on-finding: {}", signals.error().what));
  (void)signals->drain();  // what came before was for the job
  bool go_on = true;
  if (!hooks.on_end.empty()) go_on = call("--on-end", hooks.on_end, {report::to_json(end, explanation)}, *signals);
  if (go_on && !hooks.on_finding.empty() && explanation != nullptr) {
    std::vector<std::string> documents;
    const report::LeftToTell left = report::left_to_tell(told, *explanation);
    for (const std::size_t i : left.fresh)
      documents.push_back(report::finding_notice(end, *explanation, i, report::Told::kAtEnd));
    for (const report::ToldFinding& one : left.withdrawn)
      documents.push_back(report::withdrawn_notice(end, one.finding));
    for (const report::ToldFinding& one : left.over)
      documents.push_back(report::over_notice(end, one.finding, report::Told::kAtEnd));
    (void)call("--on-finding", hooks.on_finding, documents, *signals);
  }
  signals->release();
}

}  // namespace headroom::cli
