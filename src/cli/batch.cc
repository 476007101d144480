// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/duration.h"
#include "base/filesystem.h"
#include "base/human.h"
#include "base/ids.h"
#include "base/strings.h"
#include "batch/control.h"
#include "batch/event_loop.h"
#include "batch/executor/local_executor.h"
#include "batch/history_plan.h"
#include "batch/identity.h"
#include "batch/resume.h"
#include "batch/session_recorder.h"
#include "batch/task_logs.h"
#include "cli/batch_ask.h"
#include "cli/batch_setup.h"
#include "cli/batch_view.h"
#include "cli/environment.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "diagnose/explain.h"
#include "host/host_reader.h"
#include "record/reader.h"
#include "record/shelf.h"
#include "report/batch.h"
#include "scheduler/order.h"

namespace headroom::cli {

namespace {

constexpr Nanos kRepaint = 500 * kMillisecond;

// One invocation of `headroom batch` that runs tasks.
class BatchVerb {
 public:
  BatchVerb(const BatchCommand& command, const std::vector<std::string>& after_dashes, Nanos interval, Nanos grace)
      : command_(command), after_dashes_(after_dashes), interval_(interval), grace_(grace) {}
  int run();

 private:
  Result<int> run_tasks();
  Result<void> prepare_gpus();
  Result<void> open_journal(batch::Guardian& guardian);
  void load_history();
  [[nodiscard]] std::vector<std::string> gpu_models() const;
  void say_what_follows() const;
  [[nodiscard]] batch::BatchOptions batch_options();
  [[nodiscard]] SessionOptions session();
  [[nodiscard]] std::vector<std::string> given_gpus() const;
  [[nodiscard]] int finish(batch::SessionRecorder& recorder, const batch::BatchEnd& end);
  [[nodiscard]] std::optional<Explanation> explained(const SessionResult& recorded) const;
  int nothing_to_do();
  [[nodiscard]] std::string answer(const batch::Batch& batch, batch::BatchLoop& loop, std::string_view request) const;
  [[nodiscard]] Result<int> dry_run();

  const BatchCommand& command_;
  const std::vector<std::string>& after_dashes_;
  const Nanos interval_, grace_;
  tasks::TaskSet set_;
  scheduler::TaskPlan plan_;
  std::string folder_;
  Fd lock_;
  GpuChoice gpus_;
  std::unique_ptr<host::TreeReader> tree_;
  host::TreeReader* raw_tree_ = nullptr;
  const std::string recording_id_ = random_id();
  std::unique_ptr<batch::Journal> journal_;
  std::vector<batch::KnownTask> known_;
  std::vector<std::string> fingerprints_;
  std::optional<batch::GitState> git_;
  std::size_t earlier_ = 0;
  bool placement_readable_ = false;
  batch::History history_;
  std::string history_path_;
};

int BatchVerb::run() {
  const auto code = run_tasks();
  return code ? *code : report_error(code.error());
}

Result<int> BatchVerb::run_tasks() {
  HR_TRY(set_, read_tasks(command_, after_dashes_));
  HR_TRY(plan_, scheduler::plan_tasks(set_.tasks));
  folder_ = folder_of(command_, set_);
  if (command_.dry_run) {
    tree_ = make_tree({}, recording_id_, JobOf::kRecorder);
    HR_TRYV(prepare_gpus());
    return dry_run();
  }
  HR_TRY(lock_, take_folder(folder_, command_.fresh));
  // Before any thread: they inherit the blocked signals, and the guardian is a fork.
  HR_TRY(Signals signals, Signals::block({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}));
  HR_TRY(batch::Guardian guardian, batch::Guardian::start(grace_, lock_.get()));
  HR_TRYV(open_journal(guardian));
  batch::stop_what_was_left(*journal_, grace_, say);
  tree_ = make_tree({}, recording_id_, JobOf::kRecorder);
  raw_tree_ = tree_.get();
  raw_tree_->exclude(guardian.pid());
  HR_TRYV(prepare_gpus());
  load_history();
  HR_TRY(plan_, scheduler::plan_tasks(set_.tasks, batch::expected_durations(history_, gpu_models())));
  earlier_ = batch::keep_or_rerun(set_.tasks, known_, say);
  fingerprints_ = batch::fingerprints_of(set_.tasks);
  batch::warn_of_changes(known_, fingerprints_, journal_->last_run(), git_, say);
  if (earlier_ == set_.tasks.size()) return nothing_to_do();
  say_what_follows();
  HR_TRY(const std::unique_ptr<Loop> loop, Loop::create());
  BatchView view(command_.live.quiet);
  batch::Follower follower([&view](const std::string& lines) { view.output(lines); });
  batch::BatchOptions options = batch_options();
  if (command_.follow) {
    options.inspect_log = [&follower, inspect = options.inspect_log](const TaskSpec& task, Attempt& attempt) {
      inspect(task, attempt);
      follower.ended(attempt, task.name);
    };
  }
  const batch::MachineClock clock;
  batch::LocalExecutor executor(
      *loop, guardian,
      {.batch_id = journal_->batch_id(), .folder = folder_, .mask = signals.mask_before(), .grace = grace_});
  batch::BatchLoop* running = nullptr;
  batch::SessionRecorder recorder({.loop = *loop,
                                   .session = session(),
                                   .tree = raw_tree_,
                                   .gpus = std::move(gpus_.reader),
                                   .given = given_gpus(),
                                   .on_snapshot =
                                       [&running](const batch::Snapshot& now) {
                                         if (running != nullptr) running->look(now);
                                       },
                                   .on_trouble =
                                       [&view](const Error& error) {
                                         view.note(batch::MessageKind::kProblem,
                                                   batch::words::recording_stopped(error.what));
                                       }});
  batch::Batch batch(std::move(options), std::move(plan_), known_,
                     {.executor = executor,
                      .journal = *journal_,
                      .recorder = recorder,
                      .clock = clock,
                      .say = [&view](batch::MessageKind kind, const std::string& text) { view.note(kind, text); }});
  batch::BatchLoop batch_loop(*loop, signals, executor, batch);
  running = &batch_loop;
  auto control = batch::ControlServer::open(
      *loop, folder_, [&](std::string_view request) { return answer(batch, batch_loop, request); });
  if (!control)
    view.note(batch::MessageKind::kProblem,
              fmt::format("{}: batch status and cancel will not work", control.error().what));
  const std::function<void()> repaint = [&] {
    const BatchProgress progress = batch.progress();
    if (command_.follow && !view.output_waits()) follower.look(progress.running);
    view.show(progress);
    loop->after(kRepaint, repaint);
  };
  loop->after(kRepaint, repaint);
  batch_loop.run();
  view.finish();
  return finish(recorder, batch.end());
}

Result<void> BatchVerb::prepare_gpus() {
  HR_TRY(gpus_, choose_gpus(command_, *tree_));
  if (!gpus_.note.empty()) say(gpus_.note, "");
  if (gpus_.pin == batch::PinBy::kNothing) HR_TRYV(leave_gpus_alone(set_.tasks, gpus_.note));
  const auto most = static_cast<int>(gpus_.gpus.size());
  for (const TaskSpec& task : set_.tasks)
    if (task.resources.gpus > most)
      return fail(Errc::kInvalidInput,
                  fmt::format("task '{}' needs {} GPUs, and there are {}", task.name, task.resources.gpus, most));
  return {};
}

Result<void> BatchVerb::open_journal(batch::Guardian& guardian) {
  HR_TRY(journal_, batch::Journal::open(folder_));
  guardian.set_batch(journal_->batch_id());
  git_ = batch::git_state(current_directory());
  HR_TRY(known_, journal_->register_tasks(set_.tasks));
  batch::Run run{.start = realtime_now(),
                 .command = resume_line(command_, after_dashes_),
                 .working_directory = current_directory()};
  if (git_) run.git_commit = git_->commit, run.git_dirty = git_->dirty;
  return journal_->begin_run(std::move(run));
}

void BatchVerb::load_history() {
  const auto shelf = users_shelf();
  if (!shelf) return;  // nowhere to keep it
  history_path_ = shelf->directory() + "/batch-history.jsonl";
  history_ = batch::History::load(history_path_);
}

std::vector<std::string> BatchVerb::gpu_models() const {
  std::vector<std::string> models;
  for (const auto& gpu : gpus_.gpus)
    if (std::find(models.begin(), models.end(), gpu.model) == models.end()) models.push_back(gpu.model);
  if (models.empty()) models.emplace_back();
  return models;
}

void BatchVerb::say_what_follows() const {
  if (command_.live.quiet) return;
  std::string text = fmt::format("{} tasks", set_.tasks.size());
  if (gpus_.gpus.empty())
    text += " · no GPUs";
  else
    text += fmt::format(" · {} {} · {}", gpus_.gpus.size(), gpus_.gpus.size() == 1 ? "GPU" : "GPUs",
                        command_.no_pack || !gpus_.reader ? "one per GPU"
                        : command_.per_gpu > 0            ? fmt::format("{} per GPU", command_.per_gpu)
                                                          : "packing on");
  if (earlier_ > 0) text += fmt::format(" · {} succeeded earlier", earlier_);
  std::size_t in_flight = 0;
  for (const auto& known : known_) in_flight += known.in_flight ? 1 : 0;
  text += fmt::format(" · resume: {}\n", resume_line(command_, after_dashes_));
  if (in_flight > 0)
    text += fmt::format("- the last run died; {} {} that were under way run again\n", in_flight,
                        in_flight == 1 ? "task" : "tasks");
  (void)write_all(STDERR_FILENO, text);
}

batch::BatchOptions BatchVerb::batch_options() {
  batch::BatchOptions options;
  options.folder = folder_;
  options.group_limits = set_.groups;
  options.fingerprints = fingerprints_;
  options.gpus = gpus_.gpus;
  options.pin = gpus_.pin;
  options.stop_misplaced = command_.stop_misplaced;
  options.max_failures = command_.max_failures;
  options.gpu_processes_visible = gpus_.reader && (on_virtual_gpus() || !host::in_nested_pid_namespace());
  if (gpus_.reader && !options.gpu_processes_visible)
    say("inside a container the driver's process numbers mean nothing: placement cannot be proven here", "");
  placement_readable_ = options.gpu_processes_visible;
  options.driver_version = gpus_.driver_version;
  if (git_) options.git_commit = git_->commit, options.git_dirty = git_->dirty;
  scheduler::PlannerSetup& planner = options.planner;
  const Host host = host::HostReader({}).describe();
  planner.host.cores = host.cores_usable.value_or(std::max(1, host.cores));
  planner.host.memory_bytes = host.memory_total_bytes.value_or(0);
  if (const auto limit = host::OwnCgroup().limits().memory_max_bytes)
    planner.host.memory_bytes = std::min(planner.host.memory_bytes, *limit);
  planner.slots = command_.slots;
  if (command_.per_gpu > 0) {
    planner.pack = scheduler::PackMode::kFixed;
    planner.per_gpu = command_.per_gpu;
  } else if (command_.no_pack || !gpus_.reader) {
    planner.pack = scheduler::PackMode::kOnePerGpu;
  }
  if (std::any_of(set_.tasks.begin(), set_.tasks.end(), [](const TaskSpec& task) { return !task.inputs.empty(); }))
    options.inspect_inputs = batch::input_hasher(current_directory());
  options.inspect_log = batch::log_inspector(set_.patterns, current_directory());
  options.count_steps = batch::step_counter(set_.patterns);
  planner.history = batch::group_histories(history_, set_.tasks, plan_, gpu_models());
  options.learn = [this](const TaskSpec& task, const Attempt& attempt, const std::string& model, double stretch) {
    if (const auto seen = batch::observation_of(task, attempt, model, stretch))
      history_.add(*seen, realtime_now() / kSecond);
  };
  options.tasks = std::move(set_.tasks);
  return options;
}

SessionOptions BatchVerb::session() {
  RecordingMeta meta = meta_at(boottime_now(), recording_id_, "batch", interval_);
  meta.command = command_words(command_, after_dashes_);
  SessionOptions session = session_options(command_.live, std::move(meta), std::move(tree_), GivenGpus::kUnknown);
  if (command_.no_record) session.open_recording = nullptr;
  if (!gpus_.reader) session.source('N').why_not = gpus_.note.empty() ? "not wanted (--gpus none)" : gpus_.note;
  return session;
}

std::vector<std::string> BatchVerb::given_gpus() const {
  std::vector<std::string> uuids;
  for (const auto& gpu : gpus_.gpus) uuids.push_back(gpu.uuid);
  return uuids;
}

std::string BatchVerb::answer(const batch::Batch& batch, batch::BatchLoop& loop, std::string_view request) const {
  if (request == "ping") return "ok\n";
  if (request == "status") return progress_json(batch.progress());
  if (request.starts_with("cancel ")) {
    const auto done = loop.cancel(std::string(request.substr(7)));
    if (done) return "ok\n";
    return fmt::format("error {}\n{}\n", done.error().what, done.error().hint);
  }
  return "error this batch does not know that request\n\n";
}

// Of what was recorded of GPUs.
std::optional<Explanation> BatchVerb::explained(const SessionResult& recorded) const {
  if (recorded.path.empty() || gpus_.gpus.empty()) return std::nullopt;
  const auto recording = read_recording(recorded.path, {.leave_out = metrics_not_explained()});
  if (!recording) {
    report_error(within("the ledger of this batch", recording.error()));
    return std::nullopt;
  }
  return explain(*recording, {.path = recorded.path});
}

int BatchVerb::finish(batch::SessionRecorder& recorder, const batch::BatchEnd& end) {
  batch::BatchEnd last = end;
  const SessionResult recorded = recorder.finish({.at = boottime_now(), .stop_reason = "job_ended"});
  last.summary.recording = recorded.path;
  journal_->note_recording(recorded.path);
  journal_->note_run_end(end.reason, realtime_now());
  if (const auto written = journal_->commit(); !written) {
    report_error(written.error());
    if (end.unwritten > 0)
      say(fmt::format("{} results could not be written: those tasks run again at the next resume", end.unwritten), "");
  }
  journal_->sync();
  if (!recorded.path.empty() && !recorded.error)
    if (const auto copied = batch::copy_journal(folder_, recorded.path); !copied)
      say(fmt::format("{}; the journal itself is whole", copied.error().what), "");
  std::error_code ignored;
  if (!history_path_.empty()) {
    std::filesystem::create_directories(std::filesystem::path(history_path_).parent_path(), ignored);
    if (const auto saved = history_.save(history_path_); !saved)
      say(fmt::format("what was learned is not kept: {}", saved.error().what), "");
  }
  const bool go_on = last.summary.tasks.left > 0 || last.summary.tasks.failed > 0;
  const report::BatchEndFacts facts{.resume = go_on ? resume_line(command_, after_dashes_) : "",
                                    .cpu_fallbacks = last.cpu_fallbacks,
                                    .earlier = earlier_,
                                    .placement_readable = placement_readable_};
  const int to = command_.json ? STDERR_FILENO : STDOUT_FILENO;
  const std::optional<Explanation> explanation = explained(recorded);
  report::TextOptions layout = text_options(to);
  if (command_.live.output.empty()) layout.recording = "last";
  (void)write_all(to, report::to_text(last.summary, facts, explanation, layout));
  if (command_.json) (void)write_all(STDOUT_FILENO, report::to_json(last.summary, facts, explanation));
  if (command_.live.output.empty() && !command_.no_record) keep_shelf_small();
  const auto& tasks = last.summary.tasks;
  if (last.signal != 0 && tasks.left > 0) return kExitInterrupted;
  return tasks.succeeded == tasks.total ? kExitOk : kExitFailed;
}

// Not even a recording.
int BatchVerb::nothing_to_do() {
  journal_->note_run_end("finished", realtime_now());
  if (const auto written = journal_->commit(); !written) report_error(written.error());
  const auto count = static_cast<std::int64_t>(set_.tasks.size());
  const std::string words = fmt::format("{} succeeded in earlier runs: nothing is left to do; --fresh starts over.\n",
                                        count == 1 ? "The task" : fmt::format("All {} tasks", human_count(count)));
  (void)write_all(command_.json ? STDERR_FILENO : STDOUT_FILENO, words);
  BatchSummary summary{.tasks = {.total = count, .succeeded = count}};
  summary.journal = journal_->path();
  if (command_.json) (void)write_all(STDOUT_FILENO, report::to_json(summary, {.earlier = earlier_}));
  return kExitOk;
}

Result<int> BatchVerb::dry_run() {
  std::error_code ignored;
  if (std::filesystem::exists(batch::journal_path(folder_), ignored) && !command_.fresh) {
    HR_TRY(known_, batch::known_in(folder_, set_.tasks));
    earlier_ = batch::keep_or_rerun(set_.tasks, known_, say);
  } else {
    known_.resize(set_.tasks.size());
  }
  load_history();
  HR_TRY(plan_, scheduler::plan_tasks(set_.tasks, batch::expected_durations(history_, gpu_models())));
  std::string text = fmt::format("{} tasks in {} {}, on {} {}; the batch's folder {} {}\n", set_.tasks.size(),
                                 plan_.groups.size(), plan_.groups.size() == 1 ? "group" : "groups", gpus_.gpus.size(),
                                 gpus_.gpus.size() == 1 ? "GPU" : "GPUs", earlier_ > 0 ? "is" : "would be", folder_);
  if (earlier_ > 0) text += fmt::format("{} succeeded earlier and would not run again\n", earlier_);
  for (std::size_t i = 0; i < set_.tasks.size(); ++i) {
    const TaskSpec& task = set_.tasks[i];
    text += fmt::format("{}  {}", task.name, task.shell ? task.argv.back() : shell_join(task.argv));
    if (!gpus_.gpus.empty() && task.resources.gpus != 1) text += fmt::format("  [GPUs {}]", task.resources.gpus);
    if (!task.after.empty()) text += fmt::format("  [after {}]", join(task.after, ", "));
    if (known_[i].state == TaskState::kSucceeded)
      text += "  [done]";
    else if (plan_.tasks[i].expected)
      text += fmt::format("  [about {}]", human_duration(*plan_.tasks[i].expected));
    text += "\n";
  }
  (void)write_all(STDOUT_FILENO, text);
  return kExitOk;
}

int batch_verb(const BatchCommand& command, const std::vector<std::string>& after_dashes) {
  const auto interval = interval_of(command.live);
  if (!interval) return report_error(interval.error());
  const auto grace = parse_duration(command.grace);
  if (!grace) return report_error(grace.error());
  if (command.per_gpu > 0 && command.no_pack)
    return report_error(
        {.code = Errc::kInvalidInput, .what = "batch: --per-gpu and --no-pack exclude each other", .hint = ""});
  ::mallopt(M_ARENA_MAX, 1);
  const int code = BatchVerb(command, after_dashes, *interval, *grace).run();
  leave(code);  // a thread may be left behind in a driver call
}

}  // namespace

Action declare_batch(VerbInput input) {
  auto command = std::make_shared<BatchCommand>();
  declare_batch_options(input.app, *command);
  const auto asked = declare_batch_questions(input.app);
  input.app.footer(
      "\nusage: headroom batch [options] TASKS     a task file, or - for command lines on stdin\n"
      "       headroom batch [options] -- CMD {} ::: A B C\n"
      "       headroom batch status|show|cancel ...\n\n"
      "The same command goes on where the last one ended. Ctrl-C lets running tasks finish, twice stops them.");
  return [command, asked, &argv = input.after_dashes] {
    if (const auto code = asked()) return *code;
    return batch_verb(*command, argv);
  };
}

}  // namespace headroom::cli
