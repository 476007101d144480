// SPDX-License-Identifier: Apache-2.0
#include "cli/record.h"

#include <malloc.h>
#include <sys/types.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/child.h"
#include "base/duration.h"
#include "base/human.h"
#include "base/ids.h"
#include "base/strings.h"
#include "base/visible.h"
#include "cli/arguments.h"
#include "cli/config.h"
#include "cli/hooks.h"
#include "cli/job_marks.h"
#include "cli/live_parts.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "diagnose/explain.h"
#include "live/loop.h"
#include "live/signals.h"
#include "output/log_facts.h"
#include "record/reader.h"
#include "report/recordings.h"

namespace headroom::cli {

namespace {

constexpr Nanos kProgressOnTerminal = 2 * kSecond, kProgressInLog = 60 * kSecond;

Result<void> check(const RunningOptions& options) {
  if (options.live.no_gpu && options.pids.empty())
    return fail(Errc::kInvalidInput, "nothing to record", "name processes with --pid, or leave out --no-gpu");
  for (const std::int64_t pid : options.pids) {
    if (pid < 1) return fail(Errc::kInvalidInput, fmt::format("{} is no process number", pid));
    if (::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH)
      return fail(Errc::kNotFound, fmt::format("there is no process {}", pid),
                  "ps -e lists what runs; in a container only its own processes can be seen");
  }
  return {};
}

// A recording of what runs already, until a signal, the duration's end, or the end of the watched processes.
class OpenEndedRecording {
 public:
  using Answer = std::function<int(const report::Recorded&)>;
  OpenEndedRecording(const RunningOptions& options, const Answer& answer, Loop& loop, Signals& signals, Nanos interval,
                     JobLines lines)
      : options_(options),
        answer_(answer),
        loop_(loop),
        signals_(signals),
        interval_(interval),
        lines_(std::move(lines)) {}
  int run();

 private:
  void start_session();
  void watch_processes();
  void look_for_processes();
  void process_ended(std::int64_t pid);
  void show_progress();
  void end_progress();
  [[nodiscard]] std::string progress() const;
  void stop(std::string reason);
  int finish();
  int complete(const SessionResult& result, Nanos end);
  void tell_hooks(const SessionResult& result, Nanos end) const;

  const RunningOptions& options_;
  const Answer& answer_;
  Loop& loop_;
  Signals& signals_;
  const Nanos interval_;
  JobLines lines_;
  const Nanos start_ = boottime_now();
  const bool terminal_ = can_repaint(STDERR_FILENO);
  FindingWatch finding_watch_{options_.hooks, "record", {}};
  std::vector<report::ToldFinding> told_;  // while it went on
  std::unique_ptr<Session> session_;
  std::vector<std::pair<std::int64_t, Fd>> watched_;  // processes by pidfd
  std::set<std::int64_t> unwatched_;                  // those without: looked for now and then
  std::string stop_reason_;
  bool progress_shown_ = false;
};

int OpenEndedRecording::run() {
  if (const auto watching = loop_.watch(signals_.fd(),
                                        [this] {
                                          if (!signals_.drain().empty()) stop("interrupted");
                                        });
      !watching)
    return report_error(watching.error());
  start_session();
  watch_processes();
  if (options_.duration > 0) loop_.at(start_ + options_.duration, [this] { stop("duration"); });
  if (!options_.live.quiet) loop_.after(terminal_ ? kProgressOnTerminal : kProgressInLog, [this] { show_progress(); });
  if (stop_reason_.empty()) loop_.run();
  return finish();
}

void OpenEndedRecording::start_session() {
  const std::string id = random_id();
  RecordingMeta meta = meta_at(start_, id, "record", interval_);
  if (options_.pids.size() == 1) meta.job_pid = options_.pids.front();
  auto made = make_tree(options_.pids, id, JobOf::kOthers);
  host::TreeReader* const tree = made.get();  // owned by the session
  SessionOptions session = session_options(options_.live, std::move(meta), std::move(made), GivenGpus::kUnknown);
  if (!options_.pids.empty()) add_stacks(session, options_.live, options_.pids, JobOf::kOthers);
  if (!lines_.logs.empty())
    add_lines(session, std::move(lines_), nullptr, options_.pids.size() == 1 ? options_.pids.front() : 0);
  session.on_failed = [this](const Error& error, Failed when) {
    loop_.post([this, error, when] {
      end_progress();
      if (when == Failed::kMidway)
        say(error.what, options_.pids.empty() ? "" : output::kJobRunsOn);
      else
        say(fmt::format("cannot record: {}", error.what), error.hint);
      stop("failed");
    });
  };
  session.source('N').on_missing = [this](const Error& error) {
    loop_.post([this, error] {
      const bool goes_on = !options_.pids.empty();
      say(fmt::format("cannot record GPUs: {}", error.what),
          goes_on ? "recording processes without GPUs; headroom doctor says more" : "headroom doctor says more");
      if (!goes_on) stop("no_gpus");
    });
  };
  finding_watch_.learn_path(session);
  finding_watch_.start(loop_, [tree](const auto& helper) { tree->exclude(helper); });
  session_ = std::make_unique<Session>(std::move(session));
}

void OpenEndedRecording::watch_processes() {
  for (const std::int64_t pid : options_.pids) {
    auto fd = open_pidfd(static_cast<pid_t>(pid));
    if (fd && loop_.watch(fd->get(), [this, pid] { process_ended(pid); }))
      watched_.emplace_back(pid, std::move(*fd));
    else
      unwatched_.insert(pid);
  }
  if (!unwatched_.empty()) look_for_processes();
}

void OpenEndedRecording::look_for_processes() {
  const std::set<std::int64_t> before = unwatched_;
  for (const std::int64_t pid : before)
    if (::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) process_ended(pid);
  if (!unwatched_.empty()) loop_.after(kSecond, [this] { look_for_processes(); });
}

void OpenEndedRecording::process_ended(std::int64_t pid) {
  unwatched_.erase(pid);
  for (auto entry = watched_.begin(); entry != watched_.end(); ++entry) {
    if (entry->first != pid) continue;
    loop_.forget(entry->second.get());
    watched_.erase(entry);
    break;
  }
  if (watched_.empty() && unwatched_.empty()) stop("job_ended");
}

std::string OpenEndedRecording::progress() const {
  const auto whole_seconds = [](Nanos time) { return human_duration(time / kSecond * kSecond); };
  const std::string so_far = whole_seconds(boottime_now() - start_);
  return fmt::format(
      "recording {}, {}; Ctrl-C ends it", report::what_is_recorded(session_->gpus(), options_.pids),
      options_.duration > 0 ? fmt::format("{} of {}", so_far, human_duration(options_.duration)) : so_far + " so far");
}

void OpenEndedRecording::show_progress() {
  // "\033[K" clears what a longer line left behind.
  (void)write_all(STDERR_FILENO, terminal_ ? fmt::format("\r{}\033[K", progress()) : progress() + "\n");
  progress_shown_ = terminal_;
  loop_.after(terminal_ ? kProgressOnTerminal : kProgressInLog, [this] { show_progress(); });
}

// Leaves the line that progress is shown on.
void OpenEndedRecording::end_progress() {
  if (std::exchange(progress_shown_, false)) (void)write_all(STDERR_FILENO, "\n");
}

void OpenEndedRecording::stop(std::string reason) {
  if (stop_reason_.empty()) stop_reason_ = std::move(reason);
  loop_.stop();
}

int OpenEndedRecording::finish() {
  const Nanos end = boottime_now();
  const SessionResult result = session_->finish({.at = end, .stop_reason = stop_reason_});
  told_ = finding_watch_.stop();
  end_progress();
  const int code = complete(result, end);
  if (options_.hooks.any()) tell_hooks(result, end);
  return code;
}

int OpenEndedRecording::complete(const SessionResult& result, Nanos end) {
  if (stop_reason_ == "no_gpus") {  // nothing was recorded that was asked for
    std::error_code ignored;
    if (!result.path.empty()) std::filesystem::remove(result.path, ignored);
    return kExitFailed;
  }
  if (result.error && !session_->failed()) report_error(*result.error);
  if (result.error) return kExitFailed;
  const int code = answer_({.path = result.path,
                            .duration = end - start_,
                            .gpus = session_->gpus(),
                            .processes = options_.pids,
                            .stop_reason = stop_reason_});
  if (options_.live.output.empty()) keep_shelf_small();
  return code;
}

// Nobody else needs an explanation here.
void OpenEndedRecording::tell_hooks(const SessionResult& result, Nanos end) const {
  report::EndNotice notice{.verb = "record", .stop_reason = stop_reason_, .duration = end - start_};
  if (result.error || result.path.empty() || stop_reason_ == "no_gpus")
    return call_hooks(options_.hooks, notice, nullptr, told_);
  notice.recording = result.path;
  const auto recording = read_recording(result.path, {.leave_out = metrics_not_explained()});
  if (!recording) {
    report_error(within("what --on-end and --on-finding are told", recording.error()));
    return call_hooks(options_.hooks, notice, nullptr, told_);
  }
  const Explanation explanation = explain(*recording, {.path = result.path, .families = users_families_if_good()});
  call_hooks(options_.hooks, notice, &explanation, told_);
}

}  // namespace

void record_running(const RunningOptions& options, const std::function<int(const report::Recorded&)>& answer) {
  const auto interval = interval_of(options.live);
  if (!interval) leave(report_error(interval.error()));
  if (const auto checked = check(options); !checked) leave(report_error(checked.error()));
  auto lines = open_lines(options.lines, LinesOf::kOthers);
  if (!lines) leave(report_error(lines.error()));
  ::mallopt(M_ARENA_MAX, 1);  // an arena per thread costs memory and would gain nothing here
  auto signals = Signals::block({SIGINT, SIGTERM, SIGHUP});
  if (!signals) leave(report_error(signals.error()));
  auto loop = Loop::create();
  if (!loop) leave(report_error(loop.error()));
  OpenEndedRecording recording(options, answer, **loop, *signals, *interval, std::move(*lines));
  leave(recording.run());
}

namespace {

struct RecordOptions {
  RunningOptions running;
  std::string duration;
  bool json = false;
};

void print_result(const RecordOptions& options, const report::Recorded& recorded) {
  if (options.json)
    put(report::to_json(recorded));
  else if (!options.running.live.quiet)
    print("Recorded {} for {} in {}\nNext: headroom why {}\n",
          report::what_is_recorded(recorded.gpus, recorded.processes), human_duration(recorded.duration), recorded.path,
          options.running.live.output.empty() ? "last" : typed_word(options.running.live.output));
}

int record_verb(RecordOptions& options) {
  if (!options.duration.empty()) {
    const auto duration = parse_duration(options.duration);
    if (!duration) return report_error(duration.error());
    options.running.duration = *duration;
  }
  record_running(options.running, [&](const report::Recorded& recorded) {
    print_result(options, recorded);
    return kExitOk;
  });
}

}  // namespace

Action declare_record(VerbInput input) {
  auto options = std::make_shared<RecordOptions>();
  RunningOptions& running = options->running;
  input.app
      .add_option("-p,--pid", running.pids, "record these processes and all that they start; ends when they have ended")
      ->type_name("PID");
  input.app.add_option("-d,--duration", options->duration, "end after this time: 90s, 10m, 2h")
      ->type_name("DURATION")
      ->check(duration_check());
  declare_live_options(input.app, running.live);
  declare_lines_options(input.app, running.lines, LinesOf::kOthers);
  input.app.add_flag("-q,--quiet", running.live.quiet, "say nothing but errors");
  declare_hooks(input.app, running.hooks);
  input.app.add_flag("--json", options->json, "say what was recorded as JSON");
  input.app.footer(
      "Without --pid all GPUs are recorded, with every process that the driver sees on them. Ctrl-C, SIGTERM and the "
      "duration's end are ways to complete a recording: the exit code is 0. It is 1 if recording failed.");
  return [options] { return record_verb(*options); };
}

}  // namespace headroom::cli
