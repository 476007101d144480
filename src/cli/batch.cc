// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <csignal>

#include "analyze/work.h"
#include "base/answers.h"
#include "base/duration.h"
#include "base/human.h"
#include "base/ids.h"
#include "base/secrets.h"
#include "base/strings.h"
#include "base/visible.h"
#include "batch/add_tasks.h"
#include "batch/control.h"
#include "batch/control_words.h"
#include "batch/event_loop.h"
#include "batch/executor/local_executor.h"
#include "batch/finish.h"
#include "batch/folder.h"
#include "batch/folder_lock.h"
#include "batch/ledger_figures.h"
#include "batch/prepare.h"
#include "batch/session_recorder.h"
#include "batch/task_logs.h"
#include "cli/arguments.h"
#include "cli/batch_ask.h"
#include "cli/batch_options.h"
#include "cli/batch_shared.h"
#include "cli/batch_slurm.h"
#include "cli/batch_view.h"
#include "cli/compare_sides.h"
#include "cli/config.h"
#include "cli/environment.h"
#include "cli/hooks.h"
#include "cli/job_marks.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "compare/requirements.h"
#include "diagnose/explain.h"
#include "host/host_reader.h"
#include "model/events.h"
#include "record/reader.h"
#include "report/batch.h"
#include "report/batch_status.h"
#include "report/requirements.h"
#include "tasks/template.h"

namespace headroom::cli {

namespace {

constexpr Nanos kRepaint = 500 * kMillisecond;

// One invocation of `headroom batch` that runs tasks.
class BatchVerb {
 public:
  BatchVerb(const BatchCommand& command, Nanos interval, Nanos grace, std::vector<Requirement> requirements)
      : command_(command), interval_(interval), grace_(grace), requirements_(std::move(requirements)) {}
  int run();
  // What the user's commands are to be told, after run(): once the batch's folder is free again.
  struct Notice {
    report::EndNotice end;
    std::optional<Explanation> explanation;
    std::vector<report::ToldFinding> told;  // while it ran
  };
  [[nodiscard]] std::optional<Notice> take_notice() { return std::move(notice_); }

 private:
  Result<int> run_tasks();
  Result<int> prepare_and_run(Signals& signals, batch::Guardian& guardian);
  [[nodiscard]] Result<int> dry_run();
  int nothing_to_do();
  void say_what_follows() const;
  [[nodiscard]] int run_prepared(Loop& loop, Signals& signals, batch::Guardian& guardian);
  [[nodiscard]] batch::SessionRecorder::Parts recorder_parts(Loop& loop, BatchView& view);
  void read_logs(batch::BatchOptions& options);
  [[nodiscard]] std::optional<Explanation> explained(const SessionResult& recorded);
  [[nodiscard]] std::vector<JudgedRequirement> judged(const std::optional<Explanation>& explanation) const;
  [[nodiscard]] std::size_t enough_tasks() const;
  [[nodiscard]] int finish(batch::SessionRecorder& recorder, batch::BatchEnd end);
  [[nodiscard]] int ended(int code, const BatchSummary& summary, std::string stop_reason,
                          std::optional<Explanation> explanation);

  BatchCommand command_;
  const Nanos interval_, grace_;
  const std::vector<Requirement> requirements_;
  const std::string recording_id_ = random_id();
  batch::Prepared batch_;
  std::optional<SharedBatch> shared_;
  std::unique_ptr<host::TreeReader> tree_;
  JobMarks marks_;
  bool placement_readable_ = false;
  std::shared_ptr<TaskLogs> logs_;  // null where nothing is recorded
  FindingWatch finding_watch_{command_.hooks, "batch", hide_secrets(command_words(command_))};
  std::vector<report::ToldFinding> told_;
  std::vector<AttemptMetric> marked_;  // by the tasks of this run
  std::optional<Notice> notice_;
};

// The answers of the control socket.
std::string answer(batch::Batch& batch, batch::BatchLoop& loop, batch::Journal& journal, std::string_view request) {
  if (request == "ping") return "ok\n";
  if (request == "status") return report::to_json(batch.progress());
  if (request.starts_with(batch::kCancelRequest)) {
    const auto patterns = batch::words_of(request.substr(batch::kCancelRequest.size()));
    if (!patterns) return batch::refusal(patterns.error());
    const auto done = loop.cancel(*patterns);
    return done ? fmt::format("ok {}\n", done->size()) : batch::refusal(done.error());
  }
  if (request == batch::kStopRequest || request == batch::kStopNowRequest) {
    const bool now = request == batch::kStopNowRequest;
    const BatchProgress before = batch.progress();
    if (now || !before.draining) loop.interrupt(now ? SIGTERM : SIGINT);  // a second "stop" is no second Ctrl-C
    return fmt::format("ok {}\n", before.tasks.running);
  }
  if (request.starts_with(batch::kAddRequest)) {
    const auto added = batch::add_tasks(request.substr(batch::kAddRequest.size()), batch, journal);
    loop.woken();
    return added ? fmt::format("ok {}\n", *added) : batch::refusal(added.error());
  }
  return "error this batch does not know that request\n\n";
}

int BatchVerb::run() {
  const auto code = run_tasks();
  return code ? *code : report_error(code.error());
}

Result<int> BatchVerb::run_tasks() {
  HR_TRY(batch_, batch::read_batch(command_.batch));
  if (command_.dry_run) return dry_run();
  HR_TRYV(answers(batch_.folder));
  if (command_.shared) {
    HR_TRYV(batch::make_shared_folder(batch_.folder));
    if (!command_.batch.trust_folder) HR_TRYV(batch::check_own(batch_.folder));
    HR_TRY(shared_, SharedBatch::prepare(command_, batch_.folder));
    batch_.folder = shared_->worker_folder();
    if (command_.live.output.empty()) command_.live.output = shared_->recording(recording_id_);
  } else if (batch::is_shared(batch_.folder)) {
    return fail(Errc::kInvalidInput, fmt::format("the batch in {} is that of several workers", batch_.folder),
                "--shared makes this one of them; --folder names another batch");
  }
  HR_TRY(batch_.place, batch::take_folder(batch_.folder, command_.batch, say));
  if (!command_.live.quiet)
    batch::warn_of_others(batch_.folder,
                          on_virtual_gpus() || command_.batch.gpus == "none" ? "cores" : "GPUs and cores", say);
  // Before any thread: they inherit the blocked signals, and the guardian is a fork.
  HR_TRY(Signals signals, Signals::block({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGCHLD}));
  HR_TRY(batch::Guardian guardian, batch::Guardian::start(grace_, batch_.place.lock.get()));
  batch::note_holder(batch_.place, guardian.pid(), grace_);
  return prepare_and_run(signals, guardian);
}

Result<int> BatchVerb::prepare_and_run(Signals& signals, batch::Guardian& guardian) {
  if (shared_) HR_TRYV(shared_->begin(batch_));
  HR_TRYV(batch::open_journal(batch_, resume_line(command_), guardian, grace_, say));
  tree_ = make_tree({}, recording_id_, JobOf::kRecorder);
  tree_->exclude(guardian.pid());
  HR_TRYV(batch::settle_places(batch_, command_.batch, *tree_, say));
  HR_TRYV(batch::compare_with_earlier(batch_, command_.batch, say));
  if (batch_.set.tasks.empty() || (!shared_ && batch_.earlier == batch_.set.tasks.size())) return nothing_to_do();
  say_what_follows();
  HR_TRY(const std::unique_ptr<Loop> loop, Loop::create());
  return run_prepared(*loop, signals, guardian);
}

int BatchVerb::run_prepared(Loop& loop, Signals& signals, batch::Guardian& guardian) {
  BatchView view(command_.live.quiet);
  batch::Follower follower([&view](const std::string& lines) { view.output(lines); });
  batch::BatchOptions options = batch::options_of(batch_, command_.batch, say);
  placement_readable_ = options.gpu_processes_visible;
  if (command_.follow) {
    options.on_exit = [&follower](const TaskSpec& task, const Attempt& attempt) { follower.ended(attempt, task.name); };
  }
  if (!command_.no_record) read_logs(options);
  if (shared_)
    shared_->feed(options, batch_, enough_tasks(), [&view](std::string_view what, std::string_view next) {
      view.note(batch::MessageKind::kProblem, next.empty() ? std::string(what) : fmt::format("{}; {}", what, next));
    });
  const batch::MachineClock clock;
  if (!command_.no_record) marks_ = JobMarks::prepare(command_.marks);
  batch::SessionRecorder* recording = nullptr;  // both: not before the loop runs
  batch::BatchLoop* running = nullptr;
  batch::LocalExecutor executor(loop, guardian, batch_.place,
                                {.batch_id = batch_.journal->batch_id(),
                                 .mask = signals.mask_before(),
                                 .grace = grace_,
                                 .environment = marks_.environment(),
                                 .on_ended = [&recording](std::int64_t pid) { recording->ended(pid); }});
  batch::SessionRecorder::Parts parts = recorder_parts(loop, view);
  parts.on_snapshot = [&running](const batch::Snapshot& now) { running->look(now); };
  batch::SessionRecorder recorder(std::move(parts));
  recording = &recorder;
  batch::Batch batch(std::move(options), std::move(batch_.plan), batch_.known,
                     {.executor = executor,
                      .journal = *batch_.journal,
                      .recorder = recorder,
                      .clock = clock,
                      .say = [&view](batch::MessageKind kind, const std::string& text) { view.note(kind, text); }});
  batch::BatchLoop batch_loop(loop, signals, executor, batch);
  running = &batch_loop;
  if (!marks_.no_nvtx().empty())
    recorder.add_event(
        to_event(events::Note{.text = "NVTX ranges are not recorded: " + marks_.no_nvtx()}, boottime_now()));
  const auto control = batch::ControlServer::open(loop, batch_.place.directory, [&](std::string_view request) {
    return answer(batch, batch_loop, *batch_.journal, request);
  });
  if (!control)
    view.note(batch::MessageKind::kProblem,
              fmt::format("{}: batch status and cancel will not work", control.error().what));
  const std::function<void()> repaint = [&] {
    const BatchProgress progress = batch.progress();
    if (command_.follow && !view.output_waits()) follower.look(progress.running);
    view.show(progress);
    loop.after(kRepaint, repaint);
  };
  loop.after(kRepaint, repaint);
  if (shared_) loop.after(0, [&] { shared_->keep_feeding(loop, batch, batch_loop); });
  batch_loop.run();
  view.finish();
  batch::BatchEnd end = batch.end();
  end.summary.longest_call = loop.longest_call();
  return finish(recorder, std::move(end));
}

// The output of tasks tells their phases, steps and metrics.
void BatchVerb::read_logs(batch::BatchOptions& options) {
  logs_ = std::make_shared<TaskLogs>(batch_.set.patterns);
  options.on_running = [logs = logs_](const TaskSpec&, const Attempt& attempt) { logs->add(attempt); };
  options.on_exit = [logs = logs_, then = std::move(options.on_exit)](const TaskSpec& task, const Attempt& attempt) {
    logs->end(attempt.id);
    if (then) then(task, attempt);
  };
}

batch::SessionRecorder::Parts BatchVerb::recorder_parts(Loop& loop, BatchView& view) {
  const Nanos start = boottime_now();
  RecordingMeta meta = meta_at(start, recording_id_, "batch", interval_);
  meta.command = command_words(command_);
  if (const JobVariables variables = variables_of_batch(); !variables.empty()) keep_job_variables(variables, meta);
  host::TreeReader* const tree = tree_.get();
  SessionOptions session = session_options(command_.live, std::move(meta), std::move(tree_), GivenGpus::kUnknown);
  marks_.add_to(session, start);
  // The tasks are this process's children, and so is what has lost its parent.
  // A task that is over sooner is one of many, and tells little; starts and looks together stay within the cost.
  constexpr StacksOfTasks kOfTasks{.from_age = 150 * kMillisecond, .most_of_core = 0.01};
  if (command_.live.stacks > 0 && !command_.no_record)
    add_stacks(session, command_.live, {}, JobOf::kRecorder, kOfTasks);
  finding_watch_.learn_path(session);
  finding_watch_.start(loop, [tree](const auto& helper) { tree->exclude(helper); });
  batch::GpuChoice& gpus = batch_.gpus;
  if (command_.no_record) session.open_recording = nullptr;
  if (logs_) logs_->add_to(session);
  if (!gpus.reader) session.source('N').why_not = gpus.note.empty() ? "not wanted (--gpus none)" : gpus.note;
  std::vector<std::string> given;
  for (const auto& gpu : gpus.gpus) given.push_back(gpu.uuid);
  return {.loop = loop,
          .session = std::move(session),
          .tree = tree,
          .gpus = std::move(gpus.reader),
          .given = std::move(given),
          .on_snapshot = nullptr,
          .on_trouble = [&view](const Error& error) {
            view.note(batch::MessageKind::kProblem, batch::words::recording_stopped(error.what));
          }};
}

// Of a shared batch: so many that wait for a place let the planner choose, and leave the others to other workers.
std::size_t BatchVerb::enough_tasks() const {
  const auto gpus = batch_.gpus.gpus.size();
  if (gpus > 0) return gpus * static_cast<std::size_t>(std::max(1, command_.batch.per_gpu));
  const Host host = host::HostReader({}).describe();
  return command_.batch.slots > 0 ? static_cast<std::size_t>(command_.batch.slots)
                                  : static_cast<std::size_t>(std::max(1, host.cores));
}

void BatchVerb::say_what_follows() const {
  if (command_.live.quiet) return;
  std::string text = shared_ ? shared_->begin_words() : "";
  text += count_of(batch_.set.tasks.size(), "task");
  if (shared_) text += " to begin with";
  if (batch_.gpus.gpus.empty())
    text += " · no GPUs";
  else
    text += fmt::format(" · {} {} · {}", batch_.gpus.gpus.size(), batch_.gpus.gpus.size() == 1 ? "GPU" : "GPUs",
                        command_.batch.no_pack || !batch_.gpus.reader ? "one per GPU"
                        : command_.batch.per_gpu > 0 ? fmt::format("{} per GPU", command_.batch.per_gpu)
                                                     : "packing on");
  if (batch_.earlier > 0)
    text += fmt::format(" · {} of {} succeeded in earlier runs", batch_.earlier, batch_.set.tasks.size());
  std::size_t in_flight = 0;
  for (const auto& known : batch_.known) in_flight += known.in_flight ? 1 : 0;
  text += fmt::format(" · resume: {}\n", resume_line(command_));
  if (in_flight > 0)
    text += fmt::format("- the last run died; {} under way {} again\n",
                        in_flight == 1 ? "1 task that was" : fmt::format("{} tasks that were", in_flight),
                        in_flight == 1 ? "runs" : "run");
  (void)write_all(STDERR_FILENO, text);
}

// What the recording says of the tasks' metrics, and of the GPUs where there are some.
std::optional<Explanation> BatchVerb::explained(const SessionResult& recorded) {
  if (recorded.path.empty()) return std::nullopt;
  const auto recording = read_recording(recorded.path, {.leave_out = metrics_not_explained()});
  if (!recording) {
    report_error(within("the ledger of this batch", recording.error()));
    return std::nullopt;
  }
  marked_ = metrics_of_attempts(*recording);
  if (batch_.gpus.gpus.empty()) return std::nullopt;
  return explain(*recording, {.path = recorded.path, .families = users_families_if_good()});
}

// By what all tasks of the folder wrote, those of earlier runs, too, and by the recording of this run.
std::vector<JudgedRequirement> BatchVerb::judged(const std::optional<Explanation>& explanation) const {
  if (requirements_.empty()) return {};
  std::vector<Figure> figures;
  if (const auto contents = batch::read_journal(batch_.folder)) {
    figures = compare::figures_of_tasks(side_of_journal(*contents, {}).samples);
  } else {
    report_error(contents.error());
  }
  if (explanation) {
    const auto recorded = compare::figures_of(*explanation);
    figures.insert(figures.end(), recorded.begin(), recorded.end());
  }
  return compare::judged(requirements_, figures);
}

int BatchVerb::finish(batch::SessionRecorder& recorder, batch::BatchEnd end) {
  const SessionResult recorded = recorder.finish({.at = boottime_now(), .stop_reason = "job_ended"});
  told_ = finding_watch_.stop();
  marks_.remove();
  const bool kept = batch::write_end(batch_, end, recorded, say);
  if (shared_) shared_->end(end.signal != 0);
  std::optional<Explanation> explanation = explained(recorded);
  batch::complete_records(batch_, end, recorded, {explanation, marked_}, say);
  end.summary.recording = recorded.path;
  end.summary.journal = batch_.journal->path();
  if (explanation) batch::put_device_use(*explanation, end.summary);
  end.summary.requirements = judged(explanation);
  const bool required = compare::all_kept(end.summary.requirements);
  const auto& tasks = end.summary.tasks;
  const bool go_on = tasks.left > 0 || tasks.failed > 0;
  const report::BatchEndFacts facts{.resume = go_on ? resume_line(command_) : "",
                                    .cpu_fallbacks = end.cpu_fallbacks,
                                    .earlier = batch_.earlier,
                                    .placement_readable = placement_readable_};
  const int to = command_.json ? STDERR_FILENO : STDOUT_FILENO;
  report::TextOptions layout = text_options(to);
  if (command_.live.output.empty()) layout.recording = "last";
  const bool all_well =
      kept && required && tasks.succeeded == tasks.total && end.summary.misplaced.empty() && end.cpu_fallbacks.empty();
  // --quiet: only what is wrong, and that without where the time went.
  const std::string text = !command_.live.quiet ? report::to_text(end.summary, facts, explanation, layout)
                           : all_well           ? ""
                                                : report::to_text(end.summary, facts, layout);
  command_.json ? (void)write_all(STDERR_FILENO, text) : (void)put(text);
  if (shared_ && !command_.live.quiet) (void)write_all(to, shared_->end_words());
  if (command_.json) put(report::to_json(end.summary, facts, explanation));
  if (command_.live.output.empty() && !command_.no_record) keep_shelf_small();
  if (end.signal != 0 && tasks.left > 0)
    return ended(kExitInterrupted, end.summary, "interrupted", std::move(explanation));
  return ended(kept && required && tasks.succeeded == tasks.total ? kExitOk : kExitFailed, end.summary, "job_ended",
               std::move(explanation));
}

// The code, and what is to be told.
int BatchVerb::ended(int code, const BatchSummary& summary, std::string stop_reason,
                     std::optional<Explanation> explanation) {
  if (!command_.hooks.any()) return code;
  report::EndNotice end{.verb = "batch",
                        .recording = summary.recording,
                        .command = explanation ? explanation->meta.command : hide_secrets(command_words(command_)),
                        .exit_code = code,
                        .stop_reason = std::move(stop_reason),
                        .duration = static_cast<Nanos>(summary.wall_seconds * 1e9),
                        .tasks = summary.tasks};
  notice_ = {std::move(end), std::move(explanation), std::move(told_)};
  return code;
}

// Not even a recording.
int BatchVerb::nothing_to_do() {
  batch::write_that_nothing_was_left(batch_, say);
  const auto count = static_cast<std::int64_t>(batch_.set.tasks.size());
  if (shared_) shared_->end(false);
  const std::string words =
      shared_ ? "Nothing is left to begin.\n" + shared_->end_words()
              : fmt::format("{} succeeded in earlier runs: nothing is left to do; --fresh starts over.\n",
                            count == 1 ? "The task" : fmt::format("All {} tasks", human_count(count)));
  if (!command_.live.quiet) command_.json ? (void)write_all(STDERR_FILENO, words) : (void)put(words);
  BatchSummary summary{.tasks = {.total = count, .succeeded = count}};
  summary.journal = batch_.journal->path();
  summary.requirements = judged(std::nullopt);
  if (!command_.live.quiet && !command_.json)
    put(report::requirements_text(summary.requirements, text_options(STDOUT_FILENO)));
  if (command_.json) put(report::to_json(summary, {.earlier = batch_.earlier}));
  const bool well = compare::all_kept(summary.requirements) && !(shared_ && shared_->any_failed());
  return ended(well ? kExitOk : kExitFailed, summary, "", std::nullopt);
}

// As it is run, but for what is filled in when it starts. After ":::" {slot} is written {%}.
std::string shown_command(const TaskSpec& task, bool arguments) {
  const auto shown = [&](const std::string& word) {
    std::string text;
    const tasks::Pieces pieces = tasks::parse_template(word).value_or(tasks::Pieces{{word, false}});
    for (const tasks::Piece& piece : pieces)
      text += !piece.placeholder ? piece.text : arguments && piece.text == "slot" ? "{%}" : "{" + piece.text + "}";
    const bool plain = std::all_of(pieces.begin(), pieces.end(), [](const tasks::Piece& piece) {
      return piece.placeholder || shell_quote(piece.text) == piece.text;
    });
    return task.shell || (plain && !pieces.empty()) ? text : shell_quote(text);
  };
  if (task.shell) return shown(task.argv.back());
  std::vector<std::string> words;
  for (const std::string& word : task.argv) words.push_back(shown(word));
  return join(words, " ");
}

Result<int> BatchVerb::dry_run() {
  tree_ = make_tree({}, recording_id_, JobOf::kRecorder);
  HR_TRYV(batch::settle_places(batch_, command_.batch, *tree_, say));
  HR_TRYV(batch::look_into_journal(batch_, command_.batch, say));
  std::string text =
      fmt::format("{} in {}, {}; the batch's folder {} {}\n", count_of(batch_.set.tasks.size(), "task"),
                  count_of(batch_.plan.groups.size(), "group"),
                  batch_.gpus.gpus.empty() ? "without GPUs" : "on " + count_of(batch_.gpus.gpus.size(), "GPU"),
                  batch_.earlier > 0 ? "is" : "would be", batch_.folder);
  if (batch_.earlier > 0)
    text += fmt::format("{} of {} succeeded in earlier runs and would not run again\n", batch_.earlier,
                        batch_.set.tasks.size());
  for (std::size_t i = 0; i < batch_.set.tasks.size(); ++i) {
    const TaskSpec& task = batch_.set.tasks[i];
    text += visible(fmt::format("{}  {}", task.name, shown_command(task, !command_.batch.after_dashes.empty())));
    if (!batch_.gpus.gpus.empty() && task.resources.gpus != 1) text += fmt::format("  [GPUs {}]", task.resources.gpus);
    if (!task.after.empty()) text += fmt::format("  [after {}]", visible(join(task.after, ", ")));
    if (batch_.known[i].state == TaskState::kSucceeded)
      text += "  [done]";
    else if (batch_.plan.tasks[i].expected)
      text += fmt::format("  [about {}]", human_duration(*batch_.plan.tasks[i].expected));
    text += "\n";
  }
  if (text.find("{%}") != std::string::npos || text.find("{slot}") != std::string::npos)
    text += "{%} and {slot} are the number of the place that a task gets: known when it starts.\n";
  put(text);
  return kExitOk;
}

int batch_verb(const BatchCommand& command) {
  const auto interval = interval_of(command.live);
  if (!interval) return report_error(interval.error());
  const auto grace = parse_duration(command.batch.grace);
  if (!grace) return report_error(grace.error());
  auto requirements = read_requirements(command.require);
  if (!requirements) return report_error(requirements.error());
  if (command.batch.per_gpu > 0 && command.batch.no_pack)
    return report_error(
        {.code = Errc::kInvalidInput, .what = "batch: --per-gpu and --no-pack exclude each other", .hint = ""});
  if (command.on.empty() && (command.jobs > 0 || !command.slurm.empty()))
    return report_error(
        {.code = Errc::kInvalidInput, .what = "batch: --jobs and --slurm are for --on slurm", .hint = ""});
  ::mallopt(M_ARENA_MAX, 1);
  if (!command.on.empty()) {
    const auto done = batch_on_slurm(command);
    return done ? *done : report_error(done.error());
  }
  int code = kExitOk;
  std::optional<BatchVerb::Notice> notice;
  {
    BatchVerb verb(command, *interval, *grace, std::move(*requirements));
    code = verb.run();
    notice = verb.take_notice();
  }
  if (notice)
    call_hooks(command.hooks, notice->end, notice->explanation ? &*notice->explanation : nullptr, notice->told);
  leave(code);  // a thread may be left behind in a driver call
}

}  // namespace

Action declare_batch(VerbInput input) {
  auto command = std::make_shared<BatchCommand>();
  declare_batch_options(input.app, *command);
  const auto asked = declare_batch_questions(input.app, input.after_dashes);
  input.app.footer(
      "The same command goes on where the last one ended. Ctrl-C lets running tasks finish, twice stops them.");
  return [command, asked, &argv = input.after_dashes] {
    if (const auto code = asked()) return *code;
    command->batch.after_dashes = argv;
    const auto shelf = users_shelf();
    command->batch.surroundings = {.variable = environment,
                                   .nvml_library = nvml_library(),
                                   .virtual_gpus = on_virtual_gpus() && !foreign_pids(),
                                   .shelf = shelf ? shelf->directory() : ""};
    return batch_verb(*command);
  };
}

}  // namespace headroom::cli
