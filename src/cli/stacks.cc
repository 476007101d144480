// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <cstdint>
#include <memory>
#include <optional>

#include "analyze/stack_profile.h"
#include "base/visible.h"
#include "cli/arguments.h"
#include "cli/config.h"
#include "cli/open_recording.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "export/process_now.h"
#include "export/stacks.h"
#include "python/threads_now.h"

namespace headroom::cli {

namespace {

constexpr int kMostPid = 1 << 22;  // of Linux

struct StacksAsked {
  std::string recording = "last", format, output;
  WindowOptions window;
  bool all = false, json = false, force = false;
  std::optional<std::int64_t> pid;
};

MayReplace own_stacks(const StacksAsked& options) {
  if (options.json) return own_json("stacks", "headroom.stacks", options.force);
  MayReplace may{.writer = "headroom stacks", .marks = {}, .all = options.force};
  if (options.format == "speedscope") may.marks.emplace_back(kSpeedscopeBeginning);
  if (options.format == "svg") may.marks.emplace_back(kFlameGraphBeginning);
  return may;
}

Result<void> stacks(const StacksAsked& options) {
  const MayReplace may = own_stacks(options);
  HR_TRYV(can_write_to(options.output, may));
  HR_TRY(const OpenedRecording opened, open_recording(options.recording));
  HR_TRY(auto families, users_families());
  const RecordingMeta& meta = opened.recording.meta;
  HR_TRY(const auto window, window_of(options.window, meta.end - meta.start));
  const auto profile =
      profile_of(opened.recording, window.value_or(std::pair(Nanos{0}, meta.end - meta.start)), families);
  if (profile.empty())
    return fail(Errc::kInvalidInput,
                fmt::format("{} has no Python stacks of time of a GPU: {}", opened.path, why_no_stacks(meta)),
                fmt::format("headroom why {} says what else is known; headroom doctor what can be read here",
                            typed_word(options.recording)));
  const StacksOptions how{.busy = options.all, .title = opened.path.substr(opened.path.rfind('/') + 1)};
  const bool people =
      options.format.empty() && (options.output.empty() || options.output == "-") && ::isatty(STDOUT_FILENO) == 1;
  return write_to(options.output, may, [&](const Output& output) {
    if (options.json) return output(stacks_json(profile, ""));
    if (people || options.format == "functions")
      return write_functions(profile, stacks::Families(families), how, output);
    if (options.format == "speedscope") return write_speedscope(profile, how, output);
    if (options.format == "svg") return write_flame_graph(profile, how, output);
    return write_collapsed(profile, how, output);
  });
}

Result<void> stacks_now(std::int64_t pid, const StacksAsked& options) {
  const MayReplace may = options.json ? own_json("stacks", "headroom.threads", options.force)
                                      : MayReplace{.writer = "headroom stacks", .marks = {}, .all = options.force};
  HR_TRYV(can_write_to(options.output, may));
  HR_TRY(const ProcessNow now, python::look_now(pid));
  return write_to(options.output, may,
                  [&](const Output& output) { return output(options.json ? threads_json(now) : threads_text(now)); });
}

}  // namespace

Action declare_stacks(VerbInput input) {
  auto options = std::make_shared<StacksAsked>();
  auto& app = input.app;
  CLI::Option* recording =
      app.add_option("RECORDING", options->recording, std::string(kRecordingWords) + "; default: last");
  CLI::Option* pid = app.add_option("-p,--pid", options->pid,
                                    "what each thread of this running process is at now, with the lines of its Python "
                                    "stacks and what it waits for; it is neither stopped nor changed")
                         ->type_name("PID")
                         ->check(CLI::Range(1, kMostPid))
                         ->excludes(recording);
  CLI::Option* format =
      app.add_option(
             "-f,--format", options->format,
             "functions: a line per function, for people; collapsed: a line per stack with milliseconds; speedscope: "
             "for speedscope.app; svg: a flame graph; default: functions on a terminal, else collapsed")
          ->check(CLI::IsMember({"functions", "collapsed", "speedscope", "svg"}))
          ->excludes(pid);
  app.add_flag("--json", options->json,
               "machine-readable, schema headroom.stacks/1: idle and busy time of each stack; with --pid "
               "headroom.threads/1")
      ->excludes(format);
  declare_window(app, options->window, "begin of the time they are of");
  for (const char* of_recording : {"--from", "--to"}) pid->excludes(app.get_option(of_recording));
  app.add_flag("--all", options->all, "also time in which kernels ran (default: idle time, which is the question)")
      ->excludes(pid);
  app.add_option("-o,--output", options->output, "a file (default, and '-': standard output)")->type_name("FILE");
  declare_force(app, options->force);
  return [options] {
    const auto done = options->pid ? stacks_now(*options->pid, *options) : stacks(*options);
    return done ? kExitOk : report_error(done.error());
  };
}

}  // namespace headroom::cli
