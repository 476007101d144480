// SPDX-License-Identifier: Apache-2.0
#include "cli/compare_sides.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/strings.h"
#include "base/visible.h"
#include "cli/batch_options.h"
#include "compare/parameters.h"
#include "tasks/template_words.h"

// A batch's journal as a side of a comparison.
namespace headroom::cli {

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

// What tells a task from the others: its name, or where something was changed on purpose its other parameters.
std::string task_key(const batch::KnownTask& task, const std::vector<std::string>& changed) {
  if (changed.empty() || task.parameters.empty()) return task.name;
  std::vector<std::string> words;
  for (const auto& [name, value] : task.parameters)
    if (std::find(changed.begin(), changed.end(), name) == changed.end()) words.push_back(name + "=" + value);
  return words.empty() ? task.group : join(words, " ");
}

std::string command_of(const Attempt& attempt) {
  std::vector<std::string> words;
  for (const auto& [name, value] : attempt.environment)
    if (!is_ours(name)) words.push_back(name + "=" + value);
  if (!words.empty()) words.insert(words.begin(), "env");
  words.insert(words.end(), attempt.argv.begin(), attempt.argv.end());
  return typed_line(words);
}

// The command of its last run, without what a pair says itself: folder, GPUs, tasks, and what makes no recording.
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
    if (is("--only=") || is("--folder=") || is("--no-record") || (is("--gpus=") && word != "--gpus=none")) continue;
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
