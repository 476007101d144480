// SPDX-License-Identifier: Apache-2.0
#include "cli/compare_sides.h"

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "base/answers.h"
#include "base/strings.h"
#include "base/visible.h"
#include "batch/folder.h"
#include "cli/batch_options.h"
#include "cli/config.h"
#include "cli/open_recording.h"
#include "cli/several.h"
#include "compare/parameters.h"
#include "compare/requirements.h"
#include "tasks/template.h"

namespace headroom::cli {

namespace {

namespace fs = std::filesystem;

// A recording is of one run of the batch: where a second one started tasks, too, neither speaks for all of it.
std::string the_recording_of(const batch::Contents& contents) {
  std::string recording;
  std::size_t runs = 0;
  for (const batch::Run& run : contents.runs) {
    const auto of_it = [&](const Attempt& attempt) {
      return attempt.start >= run.start && (!run.end || attempt.start <= *run.end);
    };
    if (std::none_of(contents.attempts.begin(), contents.attempts.end(), of_it)) continue;
    recording = run.recording;
    ++runs;
  }
  return runs == 1 ? recording : "";
}

// The most of all; not known where one run does not tell.
template <class T>
void keep_most(const std::optional<T>& more, std::optional<T>& most) {
  most = most && more ? std::optional(std::max(*most, *more)) : std::nullopt;
}

// For whoever reads it later: "last" is another one by then.
std::string label_of(const std::string& what) {
  if (what != "last" && !what.starts_with("last~")) return what;
  const auto path = path_of_recording(what);
  return path ? base_name(*path) : what;
}

void add_figures_of_tasks(compare::Side& side) {
  const auto figures = compare::figures_of_tasks(side.samples);
  side.figures.insert(side.figures.end(), figures.begin(), figures.end());
}

Result<compare::Side> side_of_batch(const std::string& what, const std::vector<std::string>& changed) {
  HR_TRY(const std::string folder, batch::find_folder(what));
  HR_TRY(const batch::Contents contents, batch::read_journal(folder));
  compare::Side side = side_of_journal(contents, changed);
  const std::string recording = the_recording_of(contents);
  if (!recording.empty())
    if (const auto opened = open_recording(recording, {}, {.leave_out = metrics_not_explained()}))
      take_batch_recording(opened->recording, side);
  add_figures_of_tasks(side);
  return side;
}

Result<compare::Side> side_of_recording(const std::string& what, const std::vector<std::string>& changed,
                                        const ImportOptions& import) {
  HR_TRY(const OpenedRecording opened, open_recording(what, import, {.leave_out = metrics_not_explained()}));
  if (opened.recording.meta.origin == "batch") {
    if (const auto contents = batch::read_copied_journal(opened.path)) {
      compare::Side side = side_of_journal(*contents, changed);
      take_batch_recording(opened.recording, side);
      add_figures_of_tasks(side);
      return side;
    }
  }
  HR_TRY(const auto families, users_families());
  return side_of_job(opened.recording, {.path = opened.path, .families = families});
}

// A folder without a batch may hold the recordings of several nodes.
bool names_a_batch(const std::string& what) {
  std::error_code ignored;
  if (fs::is_directory(what, ignored)) return batch::find_folder(what).has_value() || !mean_several({&what, 1});
  return what.ends_with(".toml") || base_name(what) == "journal.sqlite";
}

Result<compare::Side> one_side(const std::string& what, const std::vector<std::string>& changed,
                               const ImportOptions& import) {
  HR_TRYV(answers(what));
  if (base_name(what) == "journal.sqlite") return side_of_batch(fs::path(what).parent_path().string(), changed);
  return names_a_batch(what) ? side_of_batch(what, changed) : side_of_recording(what, changed, import);
}

void join_hardware(const compare::Hardware& more, compare::Hardware& all) {
  if (all.gpus != more.gpus) all.gpus.insert(all.gpus.end(), more.gpus.begin(), more.gpus.end());
  if (all.uuids != more.uuids) all.uuids.insert(all.uuids.end(), more.uuids.begin(), more.uuids.end());
  if (all.driver != more.driver) all.driver += ", " + more.driver;
}

}  // namespace

void join_sides(compare::Side more, compare::Side& all) {
  all.samples.insert(all.samples.end(), more.samples.begin(), more.samples.end());
  all.steps.insert(all.steps.end(), more.steps.begin(), more.steps.end());
  all.figures.insert(all.figures.end(), more.figures.begin(), more.figures.end());
  join_hardware(more.hardware, all.hardware);
  if (more.others) all.others = std::max(all.others.value_or(0), *more.others);
  keep_most(more.processes, all.processes);
  keep_most(more.others_bytes, all.others_bytes);
  if (all.throttled.empty()) all.throttled = more.throttled;
  if (all.bytes_read && more.bytes_read)
    *all.bytes_read += *more.bytes_read;
  else
    all.bytes_read.reset();
  for (const auto& [name, value] : more.accounts) compare::add(all.accounts, name, value);
  for (const auto& [name, value] : more.phases) compare::add(all.phases, name, value);
}

Result<compare::Side> side_of(const std::string& what, const std::vector<std::string>& changed,
                              const ImportOptions& import) {
  HR_TRYV(answers(what));
  std::vector<std::string> parts{what};
  if (what.find(',') != std::string::npos && ::access(what.c_str(), F_OK) != 0) {
    parts.clear();
    for (const std::string_view part : split(what, ',')) parts.emplace_back(trim(part));
  }
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (std::find(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(i), parts[i]) !=
        parts.begin() + static_cast<std::ptrdiff_t>(i))
      return fail(Errc::kInvalidInput, fmt::format("{} is named twice in {}", parts[i], what),
                  "one run is no repeat of itself: name runs of their own");
  HR_TRY(compare::Side side, one_side(parts.front(), changed, import));
  for (std::size_t i = 1; i < parts.size(); ++i) {
    HR_TRY(compare::Side more, one_side(parts[i], changed, import));
    join_sides(std::move(more), side);
  }
  for (std::string& part : parts) part = label_of(part);
  side.label = join(parts, ",");
  return side;
}

// A batch's journal as a side of a comparison.

namespace {

// Where an attempt ran is no parameter of it.
bool says_where(const std::string& value, const Attempt& attempt) {
  return std::any_of(attempt.gpu_uuids.begin(), attempt.gpu_uuids.end(),
                     [&](const std::string& uuid) { return value.find(uuid) != std::string::npos; });
}

std::vector<std::string> words_of(const Attempt& attempt) {
  if (attempt.argv.size() != 3 || attempt.argv[1] != "-c") return attempt.argv;
  std::vector<std::string> words;  // of a shell line, as far as blanks tell them
  for (const std::string_view word : split(attempt.argv[2], ' '))
    if (!word.empty()) words.emplace_back(word);
  return words;
}

bool is_ours(const std::string& variable) {
  return variable.starts_with("CUDA_") || variable.starts_with("HEADROOM_") || variable.starts_with("NVIDIA_");
}

compare::Parameters asked_of(const batch::KnownTask& task, const Attempt& attempt) {
  compare::Parameters asked = task.parameters;
  const auto add_new = [&](const std::string& name, const std::string& value) {
    const bool there = std::any_of(asked.begin(), asked.end(), [&](const auto& one) { return one.first == name; });
    if (!there && !says_where(value, attempt)) asked.emplace_back(name, value);
  };
  for (const auto& [name, value] : compare::parameters_of(words_of(attempt))) add_new(name, value);
  for (const auto& [name, value] : attempt.environment)
    if (!is_ours(name)) add_new("$" + name, value);
  for (const auto& [path, hash] : attempt.input_hashes) add_new("input " + base_name(path), hash);
  return asked;
}

// The identity of a task: its name, or, where something was changed on purpose, its other parameters.
std::string task_key(const batch::KnownTask& task, const std::vector<std::string>& changed) {
  if (changed.empty() || task.parameters.empty()) return task.name;
  std::vector<std::string> words;
  for (const auto& [name, value] : task.parameters)
    if (std::find(changed.begin(), changed.end(), name) == changed.end())
      words.push_back(fmt::format("{}={}", name, value));
  return words.empty() ? task.group : join(words, " ");
}

std::string command_of(const Attempt& attempt) {
  std::vector<std::string> words;
  for (const auto& [name, value] : attempt.environment)
    if (!is_ours(name)) words.push_back(fmt::format("{}={}", name, value));
  if (!words.empty()) words.insert(words.begin(), "env");
  words.insert(words.end(), attempt.argv.begin(), attempt.argv.end());
  return typed_line(words);
}

// The command of its last run, without what a pair says itself (folder, GPUs, tasks, what makes no recording) and what
// is asked of a recording.
std::optional<compare::BatchAsked> asked_of(const batch::Contents& contents, const std::vector<std::string>& changed) {
  if (contents.runs.empty()) return std::nullopt;
  const batch::Run& run = contents.runs.back();
  compare::BatchAsked asked{.folder = run.working_directory};
  std::string_view line = run.command;
  asked.from_stdin = line.ends_with(kSameLines);
  if (asked.from_stdin) line.remove_suffix(kSameLines.size());
  const auto words = tasks::split_words(line);
  if (!words || words->size() < 2 || (*words)[0] != "headroom" || (*words)[1] != "batch") return std::nullopt;
  std::vector<std::string> kept;
  bool own = true, stdin_left_out = false;  // of headroom, not of a command behind "--"
  for (std::size_t i = 2; i < words->size(); ++i) {
    const std::string& word = (*words)[i];
    own = own && word != "--";
    const auto is = [&](std::string_view option) { return own && word.starts_with(option); };
    asked.all_of_it = asked.all_of_it && !is("--only=");
    if (is("--only=") || is("--folder=") || is("--require=") || is("--no-record") ||
        (is("--gpus=") && word != "--gpus=none"))
      continue;
    if (asked.from_stdin && own && word == "-" && !std::exchange(stdin_left_out, true)) continue;
    kept.push_back(word);
  }
  asked.words = typed_line(kept);
  for (const batch::KnownTask& task : contents.tasks)
    if (!task.superseded && !task.added && (task.run == run.number || task.run == 0))
      asked.tasks.push_back({task_key(task, changed), task.name});
  return asked;
}

}  // namespace

compare::Side side_of_journal(const batch::Contents& contents, const std::vector<std::string>& changed) {
  compare::Side side;
  std::set<std::string> uuids;
  for (const Attempt& attempt : contents.attempts) {
    const batch::KnownTask& task = contents.tasks[attempt.task];
    if (task.superseded) continue;
    compare::Sample run{.task = task_key(task, changed), .begin = seconds(attempt.start)};
    run.end = attempt.end ? seconds(*attempt.end) : run.begin;
    run.outcome = attempt.outcome ? std::string(info(*attempt.outcome).name) : "under_way";
    run.why = attempt.reason;
    run.gpus = attempt.gpu_uuids;
    run.steps = attempt.steps;
    run.unseen = attempt.proof == PlacementProof::kUnseen && !attempt.gpu_uuids.empty() &&
                 attempt.outcome != AttemptOutcome::kNotStarted;
    run.asked = asked_of(task, attempt);
    run.resolved = attempt.parameters_resolved;
    run.metrics = attempt.metrics;
    side.samples.push_back(std::move(run));
    uuids.insert(attempt.gpu_uuids.begin(), attempt.gpu_uuids.end());
    if (!attempt.driver_version.empty()) side.hardware.driver = attempt.driver_version;
    if (side.command.empty()) side.command = command_of(attempt);
  }
  side.hardware.uuids = {uuids.begin(), uuids.end()};
  side.batch = asked_of(contents, changed);
  return side;
}

}  // namespace headroom::cli
