// SPDX-License-Identifier: Apache-2.0
#include "batch/prepare.h"

#include <algorithm>
#include <filesystem>

#include "base/filesystem.h"
#include "base/human.h"
#include "batch/choose_tasks.h"
#include "batch/folder.h"
#include "batch/history_plan.h"
#include "batch/identity.h"
#include "batch/read_tasks.h"
#include "batch/resume.h"
#include "batch/task_logs.h"
#include "host/cgroup.h"
#include "host/host_reader.h"

namespace headroom::batch {

namespace {

std::vector<std::string> models_of(const std::vector<BatchGpu>& gpus) {
  std::vector<std::string> models;
  for (const auto& gpu : gpus)
    if (std::find(models.begin(), models.end(), gpu.model) == models.end()) models.push_back(gpu.model);
  if (models.empty()) models.emplace_back();
  return models;
}

void load_history(Prepared& batch, const std::string& shelf) {
  if (shelf.empty()) return;  // nowhere to keep it
  batch.history_path = shelf + "/batch-history.jsonl";
  batch.history = History::load(batch.history_path);
}

scheduler::PlannerSetup planner_setup(const Prepared& batch, const Request& request) {
  scheduler::PlannerSetup planner;
  const Host host = host::HostReader({}).describe();
  planner.host.cores = host.cores_usable.value_or(std::max(1, host.cores));
  planner.host.memory_bytes = host.memory_total_bytes.value_or(0);
  if (const auto limit = host::OwnCgroup().limits().memory_max_bytes)
    planner.host.memory_bytes = std::min(planner.host.memory_bytes, *limit);
  planner.slots = request.slots;
  if (request.per_gpu > 0) {
    planner.pack = scheduler::PackMode::kFixed;
    planner.per_gpu = request.per_gpu;
  } else if (request.no_pack || !batch.gpus.reader) {
    planner.pack = scheduler::PackMode::kOnePerGpu;
  }
  planner.history = group_histories(batch.history, batch.set.tasks, batch.plan, models_of(batch.gpus.gpus));
  return planner;
}

// What is known of the ends of these tasks: they run again. Which had succeeded.
Result<std::vector<TaskKey>> forget(Prepared& batch, const std::vector<std::string>& patterns) {
  HR_TRY(const std::vector<TaskIndex> tasks, tasks_named(batch.set.tasks, patterns));
  std::vector<TaskKey> forgotten;
  for (const TaskIndex task : tasks) {
    KnownTask& known = batch.known[task];
    if (known.state == TaskState::kSucceeded) forgotten.push_back(known.key);
    known.state = TaskState::kReady, known.failures = 0, known.changed = false;
  }
  return forgotten;
}

}  // namespace

Result<Prepared> read_batch(const Request& request) {
  Prepared batch;
  HR_TRY(batch.set, read_tasks(request));
  batch.folder = folder_of(request, batch.set);
  if (!request.only.empty()) HR_TRYV(keep_only(batch.set.tasks, request.only));
  HR_TRY(batch.plan, scheduler::plan_tasks(batch.set.tasks));
  return batch;
}

Result<void> open_journal(Prepared& batch, const std::string& command, Guardian& guardian, Nanos grace,
                          const Say& say) {
  HR_TRY(batch.journal, Journal::open(batch.folder));
  guardian.set_batch(batch.journal->batch_id());
  batch.git = git_state(current_directory());
  if (batch.git && batch.git->refused) {
    say("git: this repository belongs to another user, so no commit is noted",
        "git config --global --add safe.directory DIR trusts it");
    batch.git.reset();
  }
  HR_TRY(batch.known, batch.journal->register_tasks(batch.set.tasks));
  HR_TRY(const std::size_t left, batch.journal->added_and_left());
  if (left > 0)
    say(fmt::format("{} that batch add brought to an earlier run {} left out: this command does not name {}",
                    count_of(left, "task"), left == 1 ? "is" : "are", left == 1 ? "it" : "them"),
        "headroom batch add brings them again while it runs");
  Run run{.start = realtime_now(), .command = command, .working_directory = current_directory()};
  if (batch.git) run.git_commit = batch.git->commit, run.git_dirty = batch.git->dirty;
  HR_TRYV(batch.journal->begin_run(std::move(run)));
  stop_what_was_left(*batch.journal, grace, say);
  return {};
}

Result<void> look_into_journal(Prepared& batch, const Request& request, const Say& say) {
  std::error_code ignored;
  if (request.fresh || !std::filesystem::exists(journal_path(batch.folder), ignored)) {
    batch.known.resize(batch.set.tasks.size());
    return {};
  }
  HR_TRY(batch.known, known_in(batch.folder, batch.set.tasks));
  if (const auto again = forget(batch, request.rerun); !again) return tl::unexpected(again.error());
  batch.earlier = keep_or_rerun(batch.set.tasks, batch.known, say);
  return {};
}

Result<void> settle_places(Prepared& batch, const Request& request, host::TreeReader& tree, const Say& say) {
  HR_TRY(batch.gpus, choose_gpus(request, tree));
  if (!batch.gpus.note.empty()) say(batch.gpus.note, "");
  if (batch.gpus.pin == PinBy::kNothing) HR_TRYV(leave_gpus_alone(batch.set.tasks, batch.gpus.note));
  const auto most = static_cast<int>(batch.gpus.gpus.size());
  for (const TaskSpec& task : batch.set.tasks)
    if (task.resources.gpus > most)
      return fail(Errc::kInvalidInput,
                  fmt::format("task '{}' needs {} GPUs, and there are {}", task.name, task.resources.gpus, most));
  load_history(batch, request.surroundings.shelf);
  const auto expected = expected_durations(batch.history, models_of(batch.gpus.gpus));
  for (scheduler::PlannedTask& task : batch.plan.tasks) {
    task.resources = batch.set.tasks[task.task].resources;  // without GPUs, where there are none
    task.expected = expected(batch.set.tasks[task.task]);
  }
  return {};
}

Result<void> compare_with_earlier(Prepared& batch, const Request& request, const Say& say) {
  HR_TRY(const auto again, forget(batch, request.rerun));
  for (const TaskKey task : again) batch.journal->note_task(task, TaskState::kReady, "");  // also if this run dies
  if (!again.empty()) {
    HR_TRYV(batch.journal->commit());
    say(fmt::format("{} succeeded earlier and {} again, as asked",
                    again.size() == 1 ? "1 task" : fmt::format("{} tasks", again.size()),
                    again.size() == 1 ? "runs" : "run"),
        "");
  }
  batch.earlier = keep_or_rerun(batch.set.tasks, batch.known, say);
  batch.fingerprints = fingerprints_of(batch.set.tasks);
  warn_of_changes(batch.known, batch.fingerprints, batch.journal->last_run(), batch.git, say);
  return {};
}

BatchOptions options_of(Prepared& batch, const Request& request, const Say& say) {
  const auto& tasks = batch.set.tasks;
  BatchOptions options;
  options.folder = batch.folder;
  options.group_limits = batch.set.groups;
  options.fingerprints = batch.fingerprints;
  options.gpus = batch.gpus.gpus;
  options.pin = batch.gpus.pin;
  options.stop_misplaced = request.stop_misplaced;
  options.max_failures = request.max_failures;
  options.gpu_processes_visible =
      batch.gpus.reader && (request.surroundings.virtual_gpus || !host::in_nested_pid_namespace());
  if (batch.gpus.reader && !options.gpu_processes_visible)
    say("inside a container the driver's process numbers mean nothing: placement cannot be proven here", "");
  options.driver_version = batch.gpus.driver_version;
  if (batch.git) options.git_commit = batch.git->commit, options.git_dirty = batch.git->dirty;
  options.planner = planner_setup(batch, request);
  if (std::any_of(tasks.begin(), tasks.end(), [](const TaskSpec& task) { return !task.inputs.empty(); }))
    options.inspect_inputs = input_hasher(current_directory());
  options.inspect_log = log_inspector(batch.set.patterns, current_directory());
  options.missing_outputs = output_check(current_directory());
  options.count_steps = step_counter(batch.set.patterns);
  options.steps_only_kept =
      std::none_of(batch.set.patterns.begin(), batch.set.patterns.end(),
                   [](const output::LogPattern& pattern) { return pattern.kind == output::LogPattern::Kind::kStep; });
  options.learn = [&batch, only_kept = options.steps_only_kept](const TaskSpec& task, const Attempt& attempt,
                                                                const std::string& model, double stretch,
                                                                const scheduler::CloseAttempt& closed) {
    auto seen =
        observation_of(task, attempt, model, stretch, closed.alone.whole, {closed.group_load, closed.group_cores});
    if (!seen) return;
    if (only_kept) seen->seconds_per_step.reset();
    batch.history.add(*seen, realtime_now() / kSecond);
  };
  options.took_alone = [&batch](const TaskSpec& task, const std::string& model) {
    return batch.history.took_alone(task.command_template, model, duration_key(task));
  };
  options.tasks = std::move(batch.set.tasks);
  return options;
}

}  // namespace headroom::batch
