// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/ids.h"
#include "base/secrets.h"
#include "base/strings.h"
#include "base/visible.h"
#include "cli/arguments.h"
#include "cli/config.h"
#include "cli/environment.h"
#include "cli/hooks.h"
#include "cli/job_files.h"
#include "cli/job_marks.h"
#include "cli/live_parts.h"
#include "cli/oom_watch.h"
#include "cli/output.h"
#include "cli/slurm_run.h"
#include "cli/stop_rule.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "compare/requirements.h"
#include "diagnose/explain.h"
#include "live/job.h"
#include "model/events.h"
#include "model/notes.h"
#include "output/log_facts.h"
#include "record/reader.h"
#include "report/json.h"
#include "report/requirements.h"
#include "report/text.h"

namespace headroom::cli {

namespace {

struct RunOptions {
  LiveOptions live;
  MarksChoice marks;
  LinesOptions lines;
  std::string json;
  bool force = false;  // for that file
  std::vector<std::string> require;
  Hooks hooks;
  StopRule stop;
  bool replace = false;  // a recording of this name
};

MayReplace may_replace(const RunOptions& options) { return own_json("run", "headroom.why", options.force); }

// What a terminal or a pipe takes in a moment; where nobody reads, the pump goes on after us.
constexpr Nanos kOutputPatience = 3 * kSecond;
// Processes of the job that have not ended this long after it run on.
constexpr Nanos kLeftOverPatience = 300 * kMillisecond;
// Between SIGTERM and SIGKILL, where --stop-steps or --stop-time-ns ends the job.
constexpr Nanos kStopPatience = 10 * kSecond;

// The job as it would be without Headroom: for when Headroom cannot even watch.
[[noreturn]] void become(const std::vector<std::string>& argv, const Error& why) {
  say(fmt::format("cannot record: {}", why.what), fmt::format("{}, unrecorded", output::kJobRunsOn));
  std::vector<char*> pointers;
  for (const auto& word : argv) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  ::execvp(pointers[0], pointers.data());
  say(fmt::format("cannot run '{}'", argv[0]), "");
  leave(kExitNotFound);
}

int not_started(const Error& error) {
  report_error(error);
  return error.code == Errc::kNotFound ? kExitNotFound : kExitNotExecutable;
}

std::string left_over_text(const std::vector<pid_t>& pids) {
  return pids.size() == 1 ? fmt::format("the job has ended; process {} that it started runs on", pids.front())
                          : fmt::format("the job has ended; {} processes that it started run on: {}", pids.size(),
                                        fmt::join(pids, " "));
}

// Everything about one watched job, from its start to Headroom's exit code.
class WatchedJob {
 public:
  WatchedJob(const RunOptions& options, const std::vector<std::string>& argv, Nanos interval, JobLines lines,
             std::vector<Requirement> requirements)
      : options_(options),
        argv_(argv),
        interval_(interval),
        lines_(std::move(lines)),
        requirements_(std::move(requirements)) {}

  int run();

 private:
  void start_recording(pid_t pid, Loop& loop);
  void counted(Loop& loop, std::int64_t steps);
  void stop_job(Loop& loop);
  void ended(const JobEnd& end);
  [[nodiscard]] bool report();  // false where what was asked for could not be given
  void say_what_went_wrong(bool quiet) const;
  [[nodiscard]] bool write_json(const Explanation& explanation) const;
  void print_report(const Explanation& explanation, const Recording& recording, bool quiet) const;
  [[nodiscard]] report::EndNotice notice() const;
  void end_left_over();
  [[noreturn]] void exit_as_job(bool reported);

  const RunOptions& options_;
  const std::vector<std::string>& argv_;
  const Nanos interval_;
  JobLines lines_;
  const std::vector<Requirement> requirements_;
  std::unique_ptr<pump::JobOutput> output_;  // null where it is not read
  FindingWatch finding_watch_{options_.hooks, "run", hide_secrets(argv_)};
  std::vector<report::ToldFinding> told_;  // while the job ran
  const std::string id_ = random_id();
  const std::optional<SlurmJob> slurm_ = slurm_job(variables_of_job());
  JobMarks marks_;
  Nanos start_ = 0;
  host::TreeReader* tree_ = nullptr;  // owned by the session
  std::optional<OomWatch> oom_watch_;
  std::unique_ptr<Session> session_;
  SessionResult result_;
  JobEnd end_;
  std::optional<Explanation> explanation_;
  ForegroundJob* job_ = nullptr;              // while it runs
  std::optional<std::int64_t> counted_from_;  // steps, for the rule to stop
  bool stopping_ = false, timed_ = false;
};

int WatchedJob::run() {
  auto signals = Signals::block(ForegroundJob::kSignals);
  if (!signals) become(argv_, signals.error());
  auto loop = Loop::create();
  if (!loop) {
    ::pthread_sigmask(SIG_SETMASK, &signals->mask_before(), nullptr);
    become(argv_, loop.error());
  }
  std::vector<pid_t> inherited = ForegroundJob::adopt_orphans();
  output_ = open_job_output(lines_);
  start_ = boottime_now();
  marks_ = JobMarks::prepare(options_.marks);
  std::vector<std::string> set_env{recording_marker(id_)};
  set_env.insert(set_env.end(), marks_.environment().begin(), marks_.environment().end());
  auto child = Child::spawn({.argv = argv_,
                             .set_env = std::move(set_env),
                             .standard_out = output_ ? output_->standard_out() : -1,
                             .standard_error = output_ ? output_->standard_error() : -1,
                             .signal_mask = signals->mask_before(),
                             .on_drop = OnDrop::kLeave});
  if (!child) return not_started(child.error());
  if (output_) output_->job_started();
  const pid_t pid = child->pid();
  start_recording(pid, **loop);
  auto job = ForegroundJob::follow(
      **loop, *signals, std::move(*child),
      {.on_end =
           [&](const JobEnd& end) {
             ended(end);
             (*loop)->stop();
           },
       .on_stopped =
           [&](Nanos from, Nanos to, int signal) {
             session_->add_event(
                 to_event(events::Note{.text = fmt::format("stopped by signal {}", signal)}, from, kNoSource, to));
           },
       .on_reaped =
           [&](pid_t who, ExitStatus status) {
             if (!output_ || !output_->ended(who, status)) tree_->exited(who, status.as_code());
           }},
      std::move(inherited));
  HR_CHECK(job.has_value(), "a fresh event loop takes a descriptor");
  job_ = job->get();
  (*loop)->run();
  job_ = nullptr;
  signals->release();
  bool reported = true;
  try {  // a bug of ours must not cost the job its exit code
    reported = report();
    if (options_.live.output.empty()) keep_shelf_small();
    if (stopping_) end_left_over();
    call_hooks(options_.hooks, notice(), explanation_ ? &*explanation_ : nullptr, told_);
  } catch (const std::exception& error) {
    say(fmt::format("internal error: {}", error.what()), "the recording is kept; headroom why last tries again");
  }
  exit_as_job(reported);
}

void WatchedJob::start_recording(pid_t pid, Loop& loop) {
  oom_watch_.emplace();
  RecordingMeta meta = meta_at(start_, id_, "run", interval_);
  meta.command = argv_;
  meta.job_pid = pid;
  keep_job_variables(variables_of_job(), meta);
  if (const auto box = environment("HEADROOM_SIM_COMMAND"); box && on_virtual_gpus())
    meta.extra[std::string(kVirtualGpus)] = visible(*box);
  auto tree = make_tree({pid}, id_, JobOf::kRecorder);
  tree_ = tree.get();
  SessionOptions session = session_options(options_.live, std::move(meta), std::move(tree), GivenGpus::kByEnvironment);
  add_stacks(session, options_.live, {pid}, JobOf::kRecorder);
  marks_.add_to(session, start_);
  add_lines(session, std::move(lines_), output_.get(), pid);
  if (output_) {
    for (const pid_t pump : output_->pumps()) tree_->exclude(pump);
    output_->on_pump = [this](pid_t pump) { tree_->exclude(pump); };
  }
  session.on_failed = [](const Error& error, Failed when) {
    if (when == Failed::kMidway)
      say(error.what, output::kJobRunsOn);
    else
      say(fmt::format("cannot record: {}", error.what), fmt::format("{}, unrecorded", output::kJobRunsOn));
  };
  session.source('N').on_missing = [](const Error& error) {
    say(fmt::format("cannot record GPUs: {}", error.what),
        fmt::format("{}, recorded without GPUs; headroom doctor says more", output::kJobRunsOn));
  };
  finding_watch_.learn_path(session);
  finding_watch_.start(loop, [this](const auto& helper) { tree_->exclude(helper); });
  if (options_.stop.any())
    watch_steps(session,
                [this, &loop](std::int64_t steps) { loop.post([this, &loop, steps] { counted(loop, steps); }); });
  session_ = std::make_unique<Session>(std::move(session));
  session_->add_event(to_event(events::JobStart{shell_join(argv_), pid}, start_));
  if (!marks_.no_nvtx().empty())
    session_->add_event(to_event(events::Note{.text = std::string(kNoteNvtx) + marks_.no_nvtx()}, start_));
}

void WatchedJob::counted(Loop& loop, std::int64_t steps) {
  const StopRule& rule = options_.stop;
  if (steps < rule.warm_up) return;
  if (!counted_from_) counted_from_ = steps;  // several steps may be seen at once
  if (rule.steps > 0 && steps >= *counted_from_ + rule.steps) stop_job(loop);
  if (rule.time > 0 && !std::exchange(timed_, true)) loop.after(rule.time, [this, &loop] { stop_job(loop); });
}

void WatchedJob::stop_job(Loop& loop) {
  if (job_ == nullptr || std::exchange(stopping_, true)) return;
  session_->add_event(to_event(events::Note{.text = "stopped by headroom: enough of it was seen"}, boottime_now()));
  job_->kill(SIGTERM);
  loop.after(kStopPatience, [this] {
    if (job_ != nullptr) job_->kill(SIGKILL);
  });
}

void WatchedJob::ended(const JobEnd& end) {
  end_ = end;
  if (output_) {
    for (const pid_t pump : output_->pumps()) std::erase(end_.left_over, pump);
    output_->flush(kOutputPatience);
    for (const std::string& what : output_->not_passed_on())
      say(fmt::format("a part of the job's output is lost: it cannot be written to {}", what), "");
  }
  end_.left_over = those_that_stay(std::move(end_.left_over), kLeftOverPatience);
  events::JobEnd event;
  (end.status.signal != 0 ? event.signal : event.exit_code) =
      end.status.signal != 0 ? end.status.signal : end.status.code;
  session_->add_event(to_event(event, end.at));
  if (!end_.left_over.empty())
    session_->add_event(to_event(events::Note{.text = left_over_text(end_.left_over)}, end.at));
  result_ = session_->finish({.at = end.at,
                              .stop_reason = "job_ended",
                              .exit_code = end.status.as_code(),
                              .extra = end.status.as_code() != 0 && oom_watch_ ? oom_watch_->until_now() : Attrs{}});
  told_ = finding_watch_.stop();
  marks_.remove();
}

void WatchedJob::say_what_went_wrong(bool quiet) const {
  if (!end_.left_over.empty() && !options_.live.quiet) say(left_over_text(end_.left_over), "");
  if (result_.error && !session_->failed()) say(result_.error->what, result_.error->hint);
  if (result_.path.empty() && !requirements_.empty())
    say("whether what is required was kept is not known: nothing was recorded", "");
  const int code = end_.status.as_code();
  if (!result_.path.empty() && quiet && !options_.live.quiet && code != kExitOk)
    say_how_rank_ended(*slurm_, code, result_.path);
}

bool WatchedJob::report() {
  const bool quiet = options_.live.quiet || !prints_report(slurm_);
  say_what_went_wrong(quiet);
  const bool asked = !options_.json.empty() || !requirements_.empty();
  if (result_.path.empty()) return !asked;
  if (quiet && !asked && !options_.hooks.any()) return true;
  auto recording = read_recording(result_.path, {.leave_out = metrics_not_explained()});
  if (!recording) {
    report_error(within("the report of this run", recording.error()));
    return !asked;
  }
  // On a disk that is full to the last byte the file cannot say it.
  if (session_->failed() && recording->meta.stop_reason.empty())
    recording->meta.stop_reason = result_.error && result_.error->code == Errc::kNoSpace ? "disk_full" : "failed";
  std::error_code ignored;
  Explanation& explanation = explanation_.emplace(
      explain(*recording, {.path = result_.path,
                           .file_bytes = static_cast<std::int64_t>(std::filesystem::file_size(result_.path, ignored)),
                           .families = users_families_if_good(),
                           .source_text = source_text_of(*recording)}));
  explanation.requirements = compare::judged(requirements_, compare::figures_of(explanation));
  const bool written = write_json(explanation);
  print_report(explanation, *recording, quiet);
  return written && compare::all_kept(explanation.requirements);
}

bool WatchedJob::write_json(const Explanation& explanation) const {
  if (options_.json.empty()) return true;
  auto written = write_to(options_.json, may_replace(options_), report::to_json(explanation));
  if (written) return true;
  written.error().hint = fmt::format("the recording is kept: headroom why {} --json > FILE", typed_word(result_.path));
  report_error(written.error());
  return false;
}

// Where that is to be quiet, only which requirements were not kept.
void WatchedJob::print_report(const Explanation& explanation, const Recording& recording, bool quiet) const {
  report::TextOptions layout = text_options(STDERR_FILENO);
  const bool others = slurm_ && is_one_of_many(*slurm_);  // whose recording may be the last one
  if (options_.live.output.empty() && !others) layout.recording = "last";
  if (quiet) {
    if (!compare::all_kept(explanation.requirements))
      (void)write_all(STDERR_FILENO, report::requirements_text(explanation.requirements, layout));
    return;
  }
  std::string text = "\n" + report::to_text(explanation, layout);
  if (const std::string study = study_led_by(recording); !study.empty())
    text += fmt::format("      headroom study {} {}\n", typed_word(study),
                        layout.recording.empty() ? typed_word(result_.path) : layout.recording);
  (void)write_all(STDERR_FILENO, text);
  if (others) say_where_others_are(*slurm_, result_.path);
}

report::EndNotice WatchedJob::notice() const {
  report::EndNotice notice{.verb = "run",
                           .recording = result_.path,
                           .command = explanation_ ? explanation_->meta.command : hide_secrets(argv_),
                           .stop_reason = explanation_ ? explanation_->meta.stop_reason : "job_ended",
                           .duration = end_.at - start_};
  if (stopping_)
    notice.exit_code = kExitOk;
  else
    (end_.status.signal != 0 ? notice.signal : notice.exit_code) =
        end_.status.signal != 0 ? end_.status.signal : end_.status.code;
  return notice;
}

void WatchedJob::end_left_over() {
  for (const pid_t pid : std::exchange(end_.left_over, {})) ::kill(pid, SIGTERM);
}

void WatchedJob::exit_as_job(bool reported) {
  if (stopping_) {  // its success; what it has started goes with it
    end_left_over();
    leave(reported ? kExitOk : kExitFailed);
  }
  // A shell that is running a loop stops it on Ctrl-C only if what it ran died of it, too.
  if (end_.died_of_terminal && end_.status.signal == SIGINT) {
    std::fflush(nullptr);
    ::signal(SIGINT, SIG_DFL);
    ::raise(SIGINT);
  }
  const int code = end_.status.as_code();
  leave(code == kExitOk && !reported ? kExitFailed : code);
}

int run_verb(RunOptions options, const std::vector<std::string>& argv) {
  if (argv.empty())
    return report_error(
        {.code = Errc::kInvalidInput, .what = "run: no command given", .hint = "headroom run python3 train.py"});
  const auto interval = interval_of(options.live);
  if (!interval) return report_error(interval.error());
  if (const auto can = can_write_to(options.json, may_replace(options)); !can) return report_error(can.error());
  auto requirements = read_requirements(options.require);
  if (!requirements) return report_error(requirements.error());
  auto lines = open_lines(options.lines, LinesOf::kOwnJob);
  if (!lines) return report_error(lines.error());
  if (options.replace && options.live.output.ends_with(".hrec"))
    for (const char* end : {"", "-wal", "-shm", "-journal"}) ::unlink((options.live.output + end).c_str());
  options.live.next_if_taken = true;
  options.live.output = named_in_slurm(options.live.output, slurm_job(variables_of_job()));
  ::mallopt(M_ARENA_MAX, 1);  // an arena per thread costs memory and would gain nothing here
  return WatchedJob(options, argv, *interval, std::move(*lines), std::move(*requirements)).run();
}

}  // namespace

Action declare_run(VerbInput input) {
  auto options = std::make_shared<RunOptions>();
  declare_live_options(input.app, options->live);
  declare_marks_options(input.app, options->marks);
  declare_lines_options(input.app, options->lines, LinesOf::kOwnJob);
  input.app.add_flag("-q,--quiet", options->live.quiet, "no report at the end");
  input.app
      .add_option("--json", options->json,
                  "write the report as JSON to this file, too; where that fails, a job that succeeded ends with 1")
      ->type_name("=FILE");
  declare_force(input.app, options->force);
  declare_require(input.app, options->require,
                  "what the run has to be, such as 'busy>=40%'; where it is not, or that is not known, a job that "
                  "succeeded ends with 1 (figures: docs/compare.md)");
  declare_hooks(input.app, options->hooks);
  declare_stop_rule(input.app, options->stop);
  input.app.add_flag("--replace", options->replace)->group("");
  input.app.footer(
      "The command keeps its terminal, its signals and its exit code, which headroom run returns (128+n for a\n"
      "death by signal n; 127 if there is no such command, 126 if it cannot be run). The report goes to stderr.\n"
      "Options of headroom come before the command; all that follows its first word, or --, is the command's.\n"
      "In a job of Slurm -o FOLDER/ names the file by job, step and node.");
  return [options, &argv = input.after_dashes] { return run_verb(*options, argv); };
}

}  // namespace headroom::cli
