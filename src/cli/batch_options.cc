// SPDX-License-Identifier: Apache-2.0
#include "cli/batch_options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/duration.h"
#include "base/visible.h"
#include "cli/arguments.h"

namespace headroom::cli {

namespace {

constexpr const char* kInterval = "500ms";
constexpr const char* kGrace = "10s";
constexpr int kStacks = 10;  // per second, where that takes no more than a hundredth of a core

void declare_tasks_and_places(CLI::App& app, BatchCommand& o) {
  app.add_option("TASKS", o.batch.words, "a task file (.toml, .jsonl, .csv), a list of command lines, or - for stdin")
      ->type_name("");
  app.add_option("--command", o.batch.command,
                 "command for a list of parameters, with placeholders: 'train.py --lr {lr}'")
      ->type_name("CMD");
  app.add_flag("--shell", o.batch.shell, "--command is a shell line");
  app.add_option("--gpus", o.batch.gpus,
                 "which GPUs: 0,1 or UUIDs; all (default); none: tasks run on slots, GPUs are left alone")
      ->type_name("LIST");
  app.add_option("--slots", o.batch.slots, "tasks without a GPU that run at once; default: as many as cores")
      ->check(CLI::Range(1, 4096));
  app.add_option("--per-gpu", o.batch.per_gpu, "tasks per GPU, instead of as many as pay")->check(CLI::Range(1, 64));
  app.add_flag("--no-pack", o.batch.no_pack, "one task per GPU");
  app.add_option("--pin", o.batch.pin, "CUDA_VISIBLE_DEVICES holds the uuid (default) or the index")
      ->check(CLI::IsMember({"uuid", "index"}));
  app.add_option("--second-pin", o.batch.second_pin,
                 "a command that chooses a GPU itself: refuse (default), rewrite, allow")
      ->check(CLI::IsMember({"refuse", "rewrite", "allow"}));
  app.add_option("--retries", o.batch.retries,
                 "further attempts of a task that fails (lists; a task file says its own)")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--max-failures", o.batch.max_failures, "start nothing more once so many tasks have failed")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--timeout", o.batch.timeout, "of an attempt (lists; a task file says its own)")
      ->type_name("DURATION")
      ->check(duration_check());
  app.add_option("--grace", o.batch.grace, "between SIGTERM and SIGKILL (10s)")
      ->type_name("DURATION")
      ->check(duration_check());
  app.add_flag("--stop-misplaced", o.batch.stop_misplaced, "stop tasks that compute on another GPU than the one given");
}

void declare_logs(CLI::App& app, BatchCommand& o) {
  app.add_option("--metric", o.batch.metrics, "NAME=REGEX on each task's log; the last match counts")
      ->type_name("NAME=REGEX")
      ->allow_extra_args(false);
  app.add_option("--param", o.batch.parameters, "likewise, a parameter as the task resolved it")
      ->type_name("NAME=REGEX")
      ->allow_extra_args(false);
  app.add_option("--phase", o.batch.phases,
                 "NAME=REGEX: a line of a log that matches begins the phase NAME of its task")
      ->type_name("NAME=REGEX")
      ->allow_extra_args(false);
}

void declare_workers(CLI::App& app, BatchCommand& o) {
  app.add_option("--folder", o.batch.folder, "journal and logs; default: beside the task file")->type_name("DIR");
  app.add_flag(
      "--shared", o.shared,
      "one of several workers, each started by this command on its machine, that divide the tasks among them; all "
      "must see the batch's folder (docs/batch.md)");
  app.add_option("--worker", o.worker,
                 "with --shared: the name of this worker; default: the machine's, and the job's in Slurm")
      ->type_name("NAME");
  app.add_option("--on", o.on,
                 "slurm, or slurm:PARTITION: an array of jobs of Slurm divides the tasks among them (docs/slurm.md)")
      ->type_name("WHERE");
  app.add_option("--jobs", o.jobs, "with --on: so many jobs at most, each on one node")->check(CLI::Range(1, 100'000));
  app.add_option("--slurm", o.slurm, "with --on: options of sbatch, such as '--gpus-per-node=2 --time=4:00:00'")
      ->type_name("OPTIONS")
      ->allow_extra_args(false);
  app.add_option_function<std::string>(
         "--poll", [&o](const std::string& text) { o.poll = parse_duration(text).value_or(o.poll); })
      ->check(duration_check())
      ->group("");
  app.add_option_function<std::string>(
         "--silent", [&o](const std::string& text) { o.silent = parse_duration(text).value_or(o.silent); })
      ->check(duration_check())
      ->group("");  // nobody who tests waits three minutes
}

}  // namespace

void declare_batch_options(CLI::App& app, BatchCommand& o) {
  o.live.interval = kInterval, o.live.stacks = kStacks, o.batch.grace = kGrace;
  declare_tasks_and_places(app, o);
  declare_logs(app, o);
  declare_workers(app, o);
  app.add_option("--only", o.batch.only, "only these tasks, and what they come after: names, or patterns in quotes")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  app.add_option("--rerun", o.batch.rerun, "run these tasks again, though they have succeeded")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  app.add_flag("--trust-folder", o.batch.trust_folder, "go on in a folder that others own or may write to");
  app.add_flag("--dry-run", o.dry_run, "print the plan and stop");
  app.add_flag("--fresh", o.batch.fresh, "start over; what was there is kept aside");
  app.add_flag("--no-record", o.no_record, "make no recording");
  declare_marks_options(app, o.marks);
  app.add_flag("--follow", o.follow, "show what the tasks print, byte for byte, each line with the task's name");
  app.add_flag("--json", o.json, "print headroom.batch/1 on stdout");
  app.add_flag("-q,--quiet", o.live.quiet, "say only what is wrong");
  app.add_option("-i,--interval", o.live.interval, "time between samples (500ms)")
      ->type_name("DURATION")
      ->check(duration_check());
  declare_stacks_option(app, o.live, StacksOf::kTasks);
  app.add_option("-o,--output", o.live.output, "where the recording goes; default: $XDG_STATE_HOME/headroom")
      ->type_name("FILE");
  declare_require(app, o.require,
                  "what the batch has to be, such as 'accuracy>=0.97' of each task or 'busy>=40%'; where it is not, or "
                  "that is not known, it ends with 1 (figures: docs/compare.md)");
  declare_hooks(app, o.hooks);
}

std::vector<std::string> command_words(const BatchCommand& o) {
  std::vector<std::string> words{"headroom", "batch"};
  // One word each, so that what is looked for in a command is found with its value.
  const auto text = [&](std::string_view option, const std::string& value, std::string_view otherwise = "") {
    if (value != otherwise) words.push_back(fmt::format("{}={}", option, value));
  };
  const auto number = [&](std::string_view option, int value, int otherwise) {
    if (value != otherwise) words.push_back(fmt::format("{}={}", option, value));
  };
  const auto flag = [&](std::string_view option, bool given) {
    if (given) words.emplace_back(option);
  };
  flag("--shared", o.shared), text("--worker", o.worker), text("--on", o.on), number("--jobs", o.jobs, 0);
  for (const auto& options : o.slurm) text("--slurm", options);
  text("--folder", o.batch.folder), text("--command", o.batch.command), flag("--shell", o.batch.shell);
  text("--gpus", o.batch.gpus), number("--slots", o.batch.slots, 0), number("--per-gpu", o.batch.per_gpu, 0);
  flag("--no-pack", o.batch.no_pack), text("--pin", o.batch.pin, "uuid"),
      text("--second-pin", o.batch.second_pin, "refuse");
  number("--retries", o.batch.retries, -1), number("--max-failures", o.batch.max_failures, 0);
  text("--timeout", o.batch.timeout), text("--grace", o.batch.grace, kGrace);
  flag("--stop-misplaced", o.batch.stop_misplaced);
  for (const auto& metric : o.batch.metrics) text("--metric", metric);
  for (const auto& parameter : o.batch.parameters) text("--param", parameter);
  for (const auto& phase : o.batch.phases) text("--phase", phase);
  for (const auto& pattern : o.batch.only) text("--only", pattern);
  for (const auto& pattern : o.batch.rerun) text("--rerun", pattern);
  flag("--trust-folder", o.batch.trust_folder);
  flag("--fresh", o.batch.fresh), flag("--no-record", o.no_record), flag("--no-marks", o.marks.no_marks),
      flag("--no-nvtx", o.marks.no_nvtx), flag("--follow", o.follow), flag("--json", o.json);
  flag("--quiet", o.live.quiet), text("--interval", o.live.interval, kInterval),
      text("--stacks",
           o.live.stacks_one_in > 1 ? fmt::format("1/{}", o.live.stacks_one_in) : std::to_string(o.live.stacks),
           std::to_string(kStacks));
  text("--output", o.live.output);
  for (const auto& requirement : o.require) text("--require", requirement);
  words.insert(words.end(), o.batch.words.begin(), o.batch.words.end());
  if (!o.batch.after_dashes.empty()) words.emplace_back("--");
  words.insert(words.end(), o.batch.after_dashes.begin(), o.batch.after_dashes.end());
  return words;
}

std::string resume_line(BatchCommand command) {
  command.batch.fresh = command.json = command.follow = command.live.quiet = false;
  command.live.output.clear(), command.batch.rerun.clear();
  const bool from_stdin = !command.batch.words.empty() && command.batch.words[0] == "-";
  return typed_line(command_words(command)) + std::string(from_stdin ? kSameLines : "");
}

}  // namespace headroom::cli
