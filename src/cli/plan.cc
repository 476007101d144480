// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/duration.h"
#include "base/fd.h"
#include "base/filesystem.h"
#include "base/regular_file.h"
#include "base/result.h"
#include "base/strings.h"
#include "base/visible.h"
#include "cli/arguments.h"
#include "cli/config.h"
#include "cli/open_recording.h"
#include "cli/output.h"
#include "cli/predictions.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "diagnose/explain.h"
#include "model/plan.h"
#include "plan/fill.h"
#include "plan/measured.h"
#include "plan/plan.h"
#include "plan/probe_reader.h"
#include "report/json.h"
#include "report/plan.h"
#include "report/text.h"
#include "tasks/task_file.h"

namespace headroom::cli {

namespace {

// The task file of a recorded `headroom batch FILE.toml`.
Result<std::string> task_file_of(const Plan& plan) {
  for (const std::string& word : plan.command) {
    if (word == "--") break;
    if (!word.ends_with(".toml")) continue;
    if (word.starts_with("/") || plan.directory.empty() || plan.directory == current_directory()) return word;
    return plan.directory + "/" + word;
  }
  return fail(Errc::kNotFound, "the recorded batch names no task file",
              "write the setting where the tasks are said: headroom help batch");
}

bool sets(std::string_view line, std::string_view key) {
  line = trim(line);
  if (!line.starts_with(key)) return false;
  return trim(line.substr(key.size())).starts_with("=");
}

struct Edit {
  std::size_t at = 0;                // line, from 0
  std::optional<std::string> taken;  // what stood there
  std::vector<std::string> put;
};

// Where `key` stands or should stand in [defaults].
Edit edit_of(const std::vector<std::string>& lines, const std::string& key, const std::string& value) {
  const std::string line = fmt::format("{} = \"{}\"", key, value);
  const auto is_table = [](const std::string& text) { return trim(text).starts_with("["); };
  const auto header = std::find_if(lines.begin(), lines.end(),
                                   [](const std::string& text) { return trim(text).starts_with("[defaults]"); });
  if (header == lines.end()) {
    const auto first = std::find_if(lines.begin(), lines.end(), is_table);
    return {static_cast<std::size_t>(first - lines.begin()), std::nullopt, {"[defaults]", line, ""}};
  }
  const auto end = std::find_if(header + 1, lines.end(), is_table);
  const auto old = std::find_if(header + 1, end, [&](const std::string& text) { return sets(text, key); });
  if (old != end) return {static_cast<std::size_t>(old - lines.begin()), *old, {line}};
  return {static_cast<std::size_t>(header + 1 - lines.begin()), std::nullopt, {line}};
}

std::string difference(const std::string& path, const Edit& edit) {
  std::string text = fmt::format("--- {0}\n+++ {0}\n@@ line {1} @@\n", path, edit.at + 1);
  if (edit.taken) text += fmt::format("-{}\n", *edit.taken);
  for (const std::string& line : edit.put) text += fmt::format("+{}\n", line);
  return text;
}

std::string edited(std::vector<std::string> lines, const Edit& edit) {
  const auto at = lines.begin() + static_cast<std::ptrdiff_t>(edit.at);
  const auto rest = edit.taken ? lines.erase(at) : at;
  lines.insert(rest, edit.put.begin(), edit.put.end());
  return join(lines, "\n");
}

Result<bool> may_change(const std::string& path, bool yes) {
  if (yes) return true;
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1)
    return fail(Errc::kInvalidInput, fmt::format("{} would be changed, and nobody can be asked", path),
                "--yes changes it; without --apply nothing is changed");
  HR_TRYV(write_all(STDERR_FILENO, fmt::format("Change {}? [y/N] ", visible(path))));
  std::string answer;
  for (char c = 0; ::read(STDIN_FILENO, &c, 1) == 1 && c != '\n';) answer += c;
  return lower(trim(answer)) == "y" || lower(trim(answer)) == "yes";
}

Result<void> set_in_task_file(const std::string& path, const std::string& key, const std::string& value, bool yes) {
  HR_TRY(const std::string text, read_file(path));
  std::vector<std::string> lines;
  for (const std::string_view line : split(text, '\n')) lines.emplace_back(line);
  const Edit edit = edit_of(lines, key, value);
  if (edit.taken && trim(*edit.taken) == trim(edit.put.front())) {
    print("{} says so already: {}\n", path, edit.put.front());
    return {};
  }
  const std::string changed = edited(std::move(lines), edit);
  const auto read = [](const std::string& name) { return read_file(name); };
  if (const auto tasks = tasks::tasks_from_toml(changed, path, read); !tasks)  // never leave a file that is none
    return tl::unexpected(within("with the change", tasks.error()));
  print("{}", difference(path, edit));
  HR_TRY(const bool may, may_change(path, yes));
  if (!may) {
    print("nothing was changed\n");
    return {};
  }
  HR_TRYV(write_file(path, changed));
  print("changed {}; to undo: take the line away again\n", path);
  return {};
}

// Makes those changes of a plan that Headroom itself controls: settings in [defaults] of the task file that the
// recorded batch ran. Shows each as a difference first, and asks on a terminal; elsewhere it needs `yes`.
Result<void> apply_plan(const Plan& plan, bool yes) {
  bool any = false;
  for (const Option& option : plan.options) {
    if (!option.task_file) continue;
    any = true;
    HR_TRY(const std::string path, task_file_of(plan));
    HR_TRYV(set_in_task_file(path, option.task_file->first, option.task_file->second, yes));
  }
  if (!any) print("Nothing here is Headroom's to change: the options are edits of your own code or command.\n");
  return {};
}

struct PlanOptions {
  std::string recording = "last";
  bool json = false, full = false, why = false, apply = false, yes = false, history = false, force = false;
  std::optional<std::size_t> width;
  std::string left, batch, step_times, probe, epoch, job_duration, save;
  std::optional<std::int64_t> trials, epochs, workers, tasks;
};

using Pair = std::pair<double, double>;

std::optional<Pair> pair_of(std::string_view text, char separator) {
  const auto parts = split(text, separator);
  if (parts.size() != 2) return std::nullopt;
  const auto one = parse_number<double>(parts[0]), two = parse_number<double>(parts[1]);
  if (!one || !two || !(*one > 0) || !(*two > 0) || *one > 1e12 || *two > 1e12) return std::nullopt;
  return Pair(*one, *two);
}

Result<std::optional<Nanos>> duration_of(const char* flag, const std::string& text) {
  if (text.empty()) return std::optional<Nanos>();
  auto duration = parse_duration(text);
  if (!duration) return tl::unexpected(within(flag, duration.error()));
  return std::optional<Nanos>(*duration);
}

Result<PlanRequest> request_of(const PlanOptions& options) {
  PlanRequest request;
  HR_TRY(request.left, duration_of("--left", options.left));
  HR_TRY(request.epoch, duration_of("--epoch", options.epoch));
  request.trials = options.trials;
  request.epochs = options.epochs;
  request.workers = options.workers;
  request.tasks = options.tasks;
  if (!options.batch.empty()) {
    request.batch = pair_of(options.batch, ':');
    if (!request.batch)
      return fail(Errc::kInvalidInput, fmt::format("--batch: '{}' is no pair of batch sizes", options.batch),
                  "write the size now and the one considered: --batch 32:128");
  }
  if (options.step_times.empty()) return request;
  const auto points = split(options.step_times, ',');
  const auto one = points.size() == 2 ? pair_of(points[0], '=') : std::nullopt;
  const auto two = points.size() == 2 ? pair_of(points[1], '=') : std::nullopt;
  if (!one || !two || one->first == two->first)
    return fail(Errc::kInvalidInput, fmt::format("--step-times: '{}' are no two measured sizes", options.step_times),
                "write the seconds of a step at two batch sizes: --step-times 32=0.110,64=0.130");
  if (!request.batch)
    return fail(Errc::kInvalidInput, "--step-times needs --batch", "write the sizes it is about: --batch 32:128");
  request.step_times = std::pair(*one, *two);
  return request;
}

Result<ProbeReport> probe_of(const std::string& path) {
  constexpr std::size_t kLargestProbe = std::size_t{16} << 20;
  const auto text = read_named(path, kLargestProbe);
  if (!text)
    return tl::unexpected(
        Error{text.error().code, fmt::format("--probe: {}", text.error().what),
              "such a file is made by: headroom probe --vary num_workers=0,2,4 --json -- CMD > probe.json"});
  auto probe = planning::read_probe(*text);
  if (!probe) return tl::unexpected(within(path, probe.error()));
  return probe;
}

// The plan of a probe asks about the fastest value that ran, unless another one is given.
Result<void> ask_about_probe(const Explanation& explanation, PlanRequest& request) {
  const ProbeReport& probe = *request.probe;
  const auto fastest = parse_number<double>(probe.values[*probe.best].value);
  switch (planning::varied(probe)) {
    case planning::Varied::kBatchSize: {
      const auto said = planning::batch_said(explanation);
      if (!request.batch && !said)
        return fail(Errc::kInvalidInput, "--probe: the recording does not say its batch size",
                    "write it and the one considered: --batch 32:64");
      if (!request.batch && fastest && *fastest > said->value) request.batch = std::pair(said->value, *fastest);
      if (request.batch && probe.line &&
          !planning::measured_change(probe, request.batch->first, request.batch->second)) {
        const auto point = [&](double size) {
          return std::pair(size, probe.line->fixed_seconds + probe.line->per_sample_seconds * size);
        };
        request.step_times = std::pair(point(request.batch->first), point(request.batch->second));
      }
      return {};
    }
    case planning::Varied::kWorkers: {
      const auto said = planning::workers_said(explanation);
      if (!request.workers && fastest && *fastest >= 1 && *fastest > (said ? said->value : 0))
        request.workers = static_cast<std::int64_t>(std::min(*fastest, 4096.0));
      return {};
    }
    case planning::Varied::kOther:
      break;
  }
  return fail(Errc::kInvalidInput, fmt::format("--probe: no option of a plan is about {}", visible(probe.parameter)),
              "batch sizes and loader workers can be planned with: headroom probe --vary num_workers=0,2,4 -- CMD");
}

// The question's options, to be typed again: " --tasks 4"; "" where there were none.
std::string questions_given(const CLI::App& app) {
  std::string words;
  for (const char* name : {"--left", "--trials", "--epochs", "--epoch", "--batch", "--step-times", "--probe",
                           "--workers", "--tasks", "--job-duration"})
    if (const CLI::Option* option = app.get_option(name); option->count() > 0)
      words += fmt::format(" {} {}", name, typed_word(option->as<std::string>()));
  return words;
}

// `asked`: questions_given(), and how the recording was read.
Result<void> answer(const PlanOptions& options, const ImportOptions& import, const std::string& asked) {
  if (options.history) return show_predictions(options.json);
  const MayReplace may = own_json("plan", "headroom.plan", options.force);
  HR_TRYV(can_write_to(options.save, may));
  HR_TRY(PlanRequest request, request_of(options));
  HR_TRY(const OpenedRecording opened,
         open_recording(options.recording, import, {.leave_out = metrics_not_explained()}));
  ExplainOptions explaining;
  explaining.path = opened.path;
  explaining.file_bytes = opened.file_bytes;
  HR_TRY(explaining.job_duration, duration_of("--job-duration", options.job_duration));
  HR_TRY(explaining.families, users_families());
  HR_TRY(const compare::Outcomes past, past_predictions());
  request.history = compare::cause_histories(past.list);
  request.loader = loader_of(opened.recording);
  const Explanation explanation = explain(opened.recording, explaining);
  if (!options.probe.empty()) {
    HR_TRY(request.probe, probe_of(options.probe));
    HR_TRYV(ask_about_probe(explanation, request));
  }
  const Plan plan = headroom::plan(explanation, request);
  if (!options.save.empty()) HR_TRYV(write_to(options.save, may, report::to_json(plan)));
  if (options.apply) return apply_plan(plan, options.yes);
  if (options.json) {
    if (options.why) put(report::to_json(explanation));
    put(report::to_json(plan));
  } else {
    report::TextOptions layout = text_options(STDOUT_FILENO);
    if (options.width) layout.width = *options.width;
    layout.full = options.full;
    layout.recording = typed_word(options.recording);
    if (options.why) put(report::to_text(explanation, layout) + "\n");
    layout.recording += asked;
    put(report::to_text(plan, layout, options.save == "-" ? "" : options.save));
  }
  return {};
}

}  // namespace

Action declare_plan(VerbInput input) {
  auto options = std::make_shared<PlanOptions>();
  auto& app = input.app;
  app.add_option("RECORDING", options->recording, std::string(kRecordingWords) + "; default: last");
  app.add_flag("--json", options->json, "machine-readable, schema headroom.plan/1 or headroom.predictions/1");
  app.add_flag("--full", options->full, "all options with all that is known of them");
  app.add_flag(
      "--why", options->why,
      "first the answer of headroom why, from the same reading; with --json two documents one after the other");
  app.add_option("--width", options->width, "columns of the text, 40 to 160 (default: the terminal's)")
      ->check(CLI::Range(report::kNarrowest, report::kWidest))
      ->type_name("COUNT");
  app.add_option("--left", options->left, "work left at today's pace, such as 70h: projected as a range")
      ->type_name("DURATION")
      ->check(duration_check());
  app.add_option("--trials", options->trials, "of a sweep: how many runs like this one")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("COUNT");
  app.add_option("--epochs", options->epochs, "of a run")->check(CLI::Range(1, 1'000'000))->type_name("COUNT");
  app.add_option("--epoch", options->epoch, "how long one takes, where the recording does not show it")
      ->type_name("DURATION")
      ->check(duration_check());
  app.add_option("--batch", options->batch, "batch size now and the one considered, such as 32:128")
      ->type_name("SIZES");
  app.add_option("--step-times", options->step_times,
                 "seconds of a step measured at two batch sizes: 32=0.110,64=0.130")
      ->type_name("SIZE=S,SIZE=S");
  app.add_option("--probe", options->probe,
                 "what headroom probe --json wrote of batch sizes or loader workers: its times narrow the gain")
      ->type_name("FILE");
  app.add_option("--workers", options->workers, "loader workers considered")
      ->check(CLI::Range(1, 4096))
      ->type_name("COUNT");
  app.add_option("--tasks", options->tasks, "tasks per GPU considered, of a batch")
      ->check(CLI::Range(1, 64))
      ->type_name("COUNT");
  app.add_option("--job-duration", options->job_duration,
                 "how long the job itself ran, where the recording cannot know (foreign logs)")
      ->type_name("DURATION")
      ->check(duration_check());
  app.add_option("-o,--save", options->save, "write the plan there as JSON, for headroom verify")->type_name("FILE");
  declare_force(app, options->force);
  app.add_flag("--history", options->history,
               "show what was predicted so far and how far it came true, as headroom verify found");
  app.add_flag("--apply", options->apply,
               "change what Headroom itself controls: settings of a batch's task file; shows the difference and asks");
  app.add_flag("--yes", options->yes, "with --apply: do not ask");
  auto import = declare_import_options(app);
  return [options, import, &app] {
    const auto done = answer(*options, *import, import_options_given(app) + questions_given(app));
    return done ? kExitOk : report_error(done.error());
  };
}

}  // namespace headroom::cli
