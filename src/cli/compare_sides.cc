// SPDX-License-Identifier: Apache-2.0
#include "cli/compare_sides.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "analyze/work.h"
#include "base/strings.h"
#include "batch/folder.h"
#include "cli/families.h"
#include "cli/open_recording.h"
#include "compare/parameters.h"
#include "diagnose/explain.h"
#include "model/entities.h"
#include "model/events.h"

namespace headroom::cli {

namespace {

namespace fs = std::filesystem;

std::string base_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// "train.py" of "/usr/bin/python3 -u /home/me/train.py --lr 0.1", "pkg.train" of "python -m pkg.train": what two runs
// of a program have in common, whatever its arguments.
std::string program_of(const std::vector<std::string>& argv) {
  if (argv.empty()) return "";
  if (!base_name(argv[0]).starts_with("python")) return base_name(argv[0]);
  for (std::size_t i = 1; i < argv.size(); ++i) {
    if (argv[i] == "-m" && i + 1 < argv.size()) return argv[i + 1];
    if (!argv[i].starts_with("-")) return base_name(argv[i]);
  }
  return base_name(argv[0]);
}

void add(compare::Figures& figures, const std::string& name, double value) {
  const auto found = std::find_if(figures.begin(), figures.end(), [&](const auto& one) { return one.first == name; });
  if (found != figures.end())
    found->second += value;
  else
    figures.emplace_back(name, value);
}

void take_ledger(const Explanation& explanation, compare::Side& side) {
  const Ledger& ledger = explanation.ledger;
  for (const AccountInfo& account : kAccounts)
    if (const Nanos ns = ledger.total(account.id); ns > 0) add(side.accounts, std::string(account.label), seconds(ns));
  for (const Phase& phase : explanation.phases)
    if (!phase.named_by.empty()) add(side.phases, phase.name, seconds(phase.total));
  if (ledger.budget() > 0)
    side.others = static_cast<double>(ledger.total(Account::kForeign)) / static_cast<double>(ledger.budget());
  for (const Finding& finding : explanation.findings)
    if (finding.cause == Cause::kThrottling)
      side.throttled = finding.evidence.empty() ? finding.title : finding.evidence.front();
}

void take_hardware(const Recording& recording, const std::vector<Device>& devices, compare::Hardware& hardware) {
  for (const Device& device : devices) {
    hardware.gpus.push_back(device.name);
    hardware.uuids.push_back(device.uuid);
    if (!device.driver_version.empty()) hardware.driver = device.driver_version;
  }
  if (const auto hosts = recording.all(SourceKind::kHost); !hosts.empty()) {
    const Host host = host_of(recording.sources[static_cast<std::size_t>(hosts.front())]);
    hardware.cores = host.cores_usable ? host.cores_usable : std::optional<double>(host.cores);
  }
}

// Bytes that the job's processes fetched from storage; nothing where nobody looked.
std::optional<double> bytes_read(const Recording& recording) {
  std::optional<double> sum;
  for (const SourceId id : recording.all(SourceKind::kProcess)) {
    const auto place = static_cast<std::size_t>(id);
    const Column* read = recording.tracks[place].find(Metric::kReadBytes);
    if (read == nullptr || !process_of(recording.sources[place]).in_job) continue;
    for (std::size_t row = read->values.size(); row-- > 0;)
      if (read->has(row)) {
        sum = sum.value_or(0) + static_cast<double>(read->values[row]);
        break;
      }
  }
  return sum;
}

}  // namespace

Window job_of(const Recording& recording) {
  Window job{recording.meta.start, recording.meta.end};
  for (const Event& event : recording.events) {
    if (is<events::JobStart>(event)) job.begin = event.at;
    if (is<events::JobEnd>(event)) job.end = event.at;
  }
  return job;
}

namespace {

std::string outcome_of(const RecordingMeta& meta) {
  if (meta.exit_code.value_or(0) != 0) return fmt::format("exit_code_{}", *meta.exit_code);
  if (meta.stop_reason == "interrupted" || meta.stop_reason == "recovered" || meta.stop_reason == "disk_full")
    return meta.stop_reason;
  return goes_on(meta) ? "under_way" : "succeeded";
}

std::vector<compare::Stretch> stretches_of(const StepCounts& steps) {
  std::vector<compare::Stretch> result;
  const auto& counts = steps.counts();
  for (std::size_t i = 1; i < counts.size(); ++i) {
    compare::Stretch stretch{.seconds = seconds(counts[i].at - counts[i - 1].at),
                             .steps = static_cast<double>(counts[i].steps - counts[i - 1].steps)};
    if (counts[i].samples && counts[i - 1].samples)
      stretch.seen = static_cast<double>(*counts[i].samples - *counts[i - 1].samples);
    if (stretch.seconds > 0 && stretch.steps >= 0) result.push_back(stretch);
  }
  return result;
}

}  // namespace

compare::Side side_of_job(const Recording& recording, const Explanation& explanation) {
  compare::Side side;
  const RecordingMeta& meta = recording.meta;
  const Window job = job_of(recording);
  const auto unix_seconds = [&](Nanos at) { return seconds(meta.start_realtime + (at - meta.start)); };
  compare::Sample run{.task = program_of(meta.command), .begin = unix_seconds(job.begin), .end = unix_seconds(job.end)};
  run.outcome = outcome_of(meta);
  run.asked = compare::parameters_of(meta.command);
  run.resolved = explanation.said.parameters;
  run.metrics = explanation.said.metrics;
  const StepCounts steps = step_counts(recording);
  if (!steps.counts().empty()) {
    const auto& last = steps.counts().back();
    run.steps = static_cast<double>(last.steps);
    if (last.samples) run.seen = static_cast<double>(*last.samples);
  }
  side.samples.push_back(std::move(run));
  side.steps = stretches_of(steps);
  side.command = shell_join(meta.command);
  side.bytes_read = bytes_read(recording);
  take_hardware(recording, explanation.ledger.devices, side.hardware);
  take_ledger(explanation, side);
  return side;
}

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
  return shell_join(words);
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
    run.steps = attempt.steps;
    run.asked = asked_of(task, attempt);
    run.resolved = attempt.parameters_resolved;
    run.metrics = attempt.metrics;
    side.samples.push_back(std::move(run));
    uuids.insert(attempt.gpu_uuids.begin(), attempt.gpu_uuids.end());
    if (!attempt.driver_version.empty()) side.hardware.driver = attempt.driver_version;
    if (side.command.empty()) side.command = command_of(attempt);
  }
  side.hardware.uuids = {uuids.begin(), uuids.end()};
  return side;
}

namespace {

void take_recording_of_batch(const OpenedRecording& opened, compare::Side& side) {
  const Explanation explanation = explain(opened.recording, {.path = opened.path, .families = {}});
  std::vector<Device> used;
  for (const Device& device : explanation.ledger.devices)
    if (std::find(side.hardware.uuids.begin(), side.hardware.uuids.end(), device.uuid) != side.hardware.uuids.end())
      used.push_back(device);
  side.hardware.uuids.clear();
  take_hardware(opened.recording, used, side.hardware);
  take_ledger(explanation, side);
  side.bytes_read = bytes_read(opened.recording);
}

Result<compare::Side> side_of_batch(const std::string& what, const std::vector<std::string>& changed) {
  HR_TRY(const std::string folder, batch::find_folder(what));
  HR_TRY(const batch::Contents contents, batch::read_journal(folder));
  compare::Side side = side_of_journal(contents, changed);
  // A recording is of one run of the batch: after a resume it does not speak for all of it.
  if (contents.runs.size() == 1 && !contents.runs.front().recording.empty())
    if (const auto opened = open_recording(contents.runs.front().recording, {}, {.leave_out = metrics_not_explained()}))
      take_recording_of_batch(*opened, side);
  return side;
}

Result<compare::Side> side_of_recording(const std::string& what, const std::vector<std::string>& changed,
                                        const ImportOptions& import) {
  HR_TRY(const OpenedRecording opened, open_recording(what, import, {.leave_out = metrics_not_explained()}));
  if (opened.recording.meta.origin == "batch") {
    if (const auto contents = batch::read_copied_journal(opened.path)) {
      compare::Side side = side_of_journal(*contents, changed);
      take_recording_of_batch(opened, side);
      return side;
    }
  }
  HR_TRY(const auto families, users_families());
  return side_of_job(opened.recording, explain(opened.recording, {.path = opened.path, .families = families}));
}

bool names_a_batch(const std::string& what) {
  std::error_code ignored;
  if (fs::is_directory(what, ignored)) return true;
  return what.ends_with(".toml") || base_name(what) == "journal.sqlite";
}

Result<compare::Side> one_side(const std::string& what, const std::vector<std::string>& changed,
                               const ImportOptions& import) {
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
  join_hardware(more.hardware, all.hardware);
  if (more.others) all.others = std::max(all.others.value_or(0), *more.others);
  if (all.throttled.empty()) all.throttled = more.throttled;
  if (all.bytes_read && more.bytes_read)
    *all.bytes_read += *more.bytes_read;
  else
    all.bytes_read.reset();
  for (const auto& [name, value] : more.accounts) add(all.accounts, name, value);
  for (const auto& [name, value] : more.phases) add(all.phases, name, value);
}

Result<compare::Side> side_of(const std::string& what, const std::vector<std::string>& changed,
                              const ImportOptions& import) {
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
  side.label = what;
  return side;
}

}  // namespace headroom::cli
