// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>

#include "base/duration.h"
#include "base/strings.h"
#include "base/visible.h"
#include "cli/arguments.h"
#include "cli/config.h"
#include "cli/job_files.h"
#include "cli/open_recording.h"
#include "cli/output.h"
#include "cli/record.h"
#include "cli/several.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "diagnose/explain.h"
#include "report/json.h"
#include "report/text.h"

namespace headroom::cli {

namespace {

struct WhyOptions {
  std::vector<std::string> recordings;  // none: the last
  bool json = false;
  std::optional<std::size_t> width;
  bool full = false;
  std::vector<std::int64_t> pids;  // of what runs: a recording is made of them first
  std::string duration = "30s";    // of that recording
  std::string job_duration;
  WindowOptions window;
  bool list_thresholds = false;
  std::vector<std::string> thresholds;  // NAME=VALUE
};

Result<Thresholds> thresholds_of(const std::vector<std::string>& settings) {
  Thresholds limits;
  for (const std::string& setting : settings) {
    const auto equals = setting.find('=');
    const std::string name = setting.substr(0, equals);
    const auto row = std::find_if(kThresholds.begin(), kThresholds.end(),
                                  [&](const auto& threshold) { return threshold.name == name; });
    const auto value =
        equals == std::string::npos ? std::nullopt : parse_number<double>(std::string_view(setting).substr(equals + 1));
    if (row == kThresholds.end() || !value || !(*value >= 0) || *value > 1e12)
      return fail(Errc::kInvalidInput, fmt::format("--threshold: '{}' sets no threshold", setting),
                  "write NAME=VALUE; headroom why --thresholds lists them");
    limits.set(row->id, *value);
  }
  return limits;
}

// Checks everything that can be checked before there is a recording.
Result<ExplainOptions> asked(const WhyOptions& options) {
  ExplainOptions explain;
  if (!options.job_duration.empty()) {
    HR_TRY(explain.job_duration, parse_duration(options.job_duration));
  }
  HR_TRY(explain.families, users_families());
  HR_TRY(explain.limits, thresholds_of(options.thresholds));
  return explain;
}

Result<ExplainOptions> explain_options(const WhyOptions& options, const OpenedRecording& opened) {
  HR_TRY(ExplainOptions explain, asked(options));
  explain.path = opened.path;
  explain.file_bytes = opened.file_bytes;
  explain.source_text = source_text_of(opened.recording);
  HR_TRY(explain.window, window_of(options.window, opened.recording.meta.end - opened.recording.meta.start));
  return explain;
}

// What the report of a process that was watched has no words for: it may not have been the one that was meant, and
// somebody else's is not seen whole.
void say_what_was_watched(const Explanation& e) {
  const bool on_none = std::all_of(e.ledger.entries.begin(), e.ledger.entries.end(), [](const LedgerEntry& entry) {
    return entry.account == Account::kNotUsed || entry.account == Account::kForeign;
  });
  if (on_none && !e.ledger.devices.empty())
    say("neither the process that was watched nor what it started was on a GPU",
        "headroom devices shows which processes are: name one of these");
  for (const MissingTier& missing : e.meta.missing_tiers)
    if (missing.tier == 'Y') say(fmt::format("watched without Python stacks: {}", missing.why));
}

// Of several the whole time of all is explained one by one; a part of it needs all at once.
Result<Explanation> explained(const WhyOptions& options, const ImportOptions& import) {
  const bool several_meant = mean_several(options.recordings);
  if (several_meant && options.window.from.empty() && options.window.to.empty()) {
    HR_TRY(const std::vector<std::string> paths, several(options.recordings));
    if (paths.size() > 1) {
      HR_TRY(ExplainOptions explaining, asked(options));
      if (options.recordings.size() == 1) explaining.path = options.recordings.front();
      return explain_merged(paths, import, explaining);
    }
  }
  const ReadOptions read{.leave_out = metrics_not_explained()};
  HR_TRY(const OpenedRecording opened, options.recordings.empty() ? open_recording("last", import, read)
                                                                  : open_recordings(options.recordings, import, read));
  HR_TRY(const ExplainOptions explaining, explain_options(options, opened));
  return explain(opened.recording, explaining);
}

Result<void> why(const WhyOptions& options, const ImportOptions& import, const std::string& reading) {
  HR_TRY(const Explanation explanation, explained(options, import));
  if (!options.pids.empty()) say_what_was_watched(explanation);
  if (options.json) {
    put(report::to_json(explanation));
  } else {
    report::TextOptions layout = text_options(STDOUT_FILENO);
    if (options.width) layout.width = *options.width;
    layout.full = options.full;
    for (const std::string& word : options.recordings)
      layout.recording += (layout.recording.empty() ? "" : " ") + typed_word(word);
    if (options.recordings.empty()) layout.recording = "last";
    layout.reading = reading;
    put(report::to_text(explanation, layout));
  }
  return {};
}

// `reading`: the options of `import` as they were typed.
int answer(const WhyOptions& options, const ImportOptions& import, const std::string& reading) {
  const auto done = why(options, import, reading);
  return done ? kExitOk : report_error(done.error());
}

// Running processes are watched for a while, then explained. The recording is kept as any other one is.
int watch_and_answer(const WhyOptions& options, const ImportOptions& import) {
  if (const auto good = asked(options); !good) return report_error(good.error());
  const auto duration = parse_duration(options.duration);
  if (!duration) return report_error(duration.error());
  if (*duration == 0)
    return report_error(Error{Errc::kInvalidInput, "--duration: no time at all", "write 30s, 5m, 1h"});
  RunningOptions running;
  running.pids = options.pids;
  running.duration = *duration;
  running.live.interval = "200ms";  // of half a minute a reading per second would tell little
  record_running(running, [&](const report::Recorded& recorded) {
    WhyOptions of_it = options;
    of_it.recordings = {recorded.path};
    return answer(of_it, import, "");
  });
}

}  // namespace

Action declare_why(VerbInput input) {
  auto options = std::make_shared<WhyOptions>();
  auto& app = input.app;
  auto* const recording =
      app.add_option("RECORDING", options->recordings,
                     std::string(kRecordingWords) + "; several, or a folder of them: all together; default: last");
  auto* const pid = app.add_option("-p,--pid", options->pids,
                                   "watch this running process and all that it starts, then explain that time")
                        ->type_name("PID")
                        ->excludes(recording);
  app.add_option("-d,--duration", options->duration, "of --pid: how long to watch (default 30s); Ctrl-C ends it sooner")
      ->type_name("DURATION")
      ->check(duration_check())
      ->capture_default_str()
      ->needs(pid);
  app.add_flag("--json", options->json, "machine-readable, schema headroom.why/1");
  app.add_flag("--full", options->full, "all findings with all their evidence, phases, readings and checks");
  app.add_option("--width", options->width, "columns of the text, 40 to 160 (default: the terminal's)")
      ->check(CLI::Range(report::kNarrowest, report::kWidest))
      ->type_name("COUNT");
  app.add_option("--job-duration", options->job_duration,
                 "how long the job itself ran, where the recording cannot know (foreign logs)")
      ->type_name("DURATION")
      ->check(duration_check());
  declare_window(app, options->window, "begin of the time to explain");
  // Not for reports: what one number of the diagnosis decides (./dev bench diagnosis).
  app.add_flag("--thresholds", options->list_thresholds, "the numbers that decide, schema headroom.thresholds/1")
      ->group("");
  app.add_option("--threshold", options->thresholds, "NAME=VALUE: another value for one of them")->group("");
  auto import = declare_import_options(app);
  return [options, import, &app] {
    if (options->list_thresholds) {
      put(report::thresholds_json());
      return kExitOk;
    }
    return options->pids.empty() ? answer(*options, *import, import_options_given(app))
                                 : watch_and_answer(*options, *import);
  };
}

}  // namespace headroom::cli
