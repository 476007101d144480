// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include <memory>
#include <string>

#include "base/duration.h"
#include "base/human.h"
#include "base/visible.h"
#include "cli/arguments.h"
#include "cli/record_running.h"
#include "cli/verbs.h"

namespace headroom::cli {

namespace {

struct RecordOptions {
  RunningOptions running;
  std::string duration;
  bool json = false;
};

void print_result(const RecordOptions& options, const report::Recorded& recorded) {
  if (options.json)
    put(report::to_json(recorded));
  else if (!options.running.live.quiet)
    print("Recorded {} for {} in {}\nNext: headroom why {}\n",
          report::what_is_recorded(recorded.gpus, recorded.processes), human_duration(recorded.duration), recorded.path,
          options.running.live.output.empty() ? "last" : typed_word(options.running.live.output));
}

int record_verb(RecordOptions& options) {
  if (!options.duration.empty()) {
    const auto duration = parse_duration(options.duration);
    if (!duration) return report_error(duration.error());
    options.running.duration = *duration;
  }
  record_running(options.running, [&](const report::Recorded& recorded) {
    print_result(options, recorded);
    return kExitOk;
  });
}

}  // namespace

Action declare_record(VerbInput input) {
  auto options = std::make_shared<RecordOptions>();
  RunningOptions& running = options->running;
  input.app
      .add_option("-p,--pid", running.pids, "record these processes and all that they start; ends when they have ended")
      ->type_name("PID");
  input.app.add_option("-d,--duration", options->duration, "end after this time: 90s, 10m, 2h")
      ->type_name("DURATION")
      ->check(duration_check());
  declare_live_options(input.app, running.live);
  declare_lines_options(input.app, running.lines, LinesOf::kOthers);
  input.app.add_flag("-q,--quiet", running.live.quiet, "say nothing but errors");
  declare_hooks(input.app, running.hooks);
  input.app.add_flag("--json", options->json, "say what was recorded as JSON");
  input.app.footer(
      "Without --pid all GPUs are recorded, with every process that the driver sees on them. Ctrl-C, SIGTERM and the "
      "duration's end are ways to complete a recording: the exit code is 0. It is 1 if recording failed.");
  return [options] { return record_verb(*options); };
}

}  // namespace headroom::cli
