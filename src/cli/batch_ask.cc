// SPDX-License-Identifier: Apache-2.0
#include "cli/batch_ask.h"

#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/filesystem.h"
#include "base/human.h"
#include "base/strings.h"
#include "base/visible.h"
#include "batch/control.h"
#include "batch/control_words.h"
#include "batch/folder.h"
#include "batch/folder_lock.h"
#include "batch/identity.h"
#include "batch/journal.h"
#include "batch/place.h"
#include "batch/read_tasks.h"
#include "batch/shared_work.h"
#include "batch/task_json.h"
#include "batch/task_logs.h"
#include "cli/arguments.h"
#include "cli/open_recording.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "report/batch.h"
#include "report/batch_status.h"
#include "report/batch_table.h"

namespace headroom::cli {

namespace {

struct Questions {
  std::string folder, task, recording, sort;
  std::vector<std::string> patterns;
  bool json = false, failed = false, log = false, follow = false, every = false, now = false, csv = false,
       reverse = false, trust_folder = false;
  batch::Request added;
  const std::vector<std::string>* after_dashes = nullptr;
  CLI::App* add = nullptr;
  CLI::App* status = nullptr;
  CLI::App* cancel = nullptr;
  CLI::App* stop = nullptr;
  CLI::App* show = nullptr;
  CLI::App* table = nullptr;
};

// "": no batch runs there.
std::string why_no_answer(const batch::Holder& holder) {
  using State = batch::Holder::State;
  switch (holder.state) {
    case State::kNobody:
      return "";
    case State::kRuns:
      return holder.pid != 0 ? fmt::format("process {} is ending, busy, or frozen", holder.pid)
                             : "it is ending, busy, or frozen";
    case State::kStopped:
      return fmt::format("process {} was stopped, as by Ctrl-Z; kill -CONT {} lets it go on", holder.pid, holder.pid);
    case State::kGuardian:
      return fmt::format("it died, and its guardian (process {}) still stops its tasks", holder.guardian);
    case State::kAnothers:
      return "it is another user's";
  }
  return "";
}

// Of several workers: "" where none was heard of lately. A worker on another machine can be asked nothing.
std::string who_works(const std::string& folder, std::vector<std::string>& words) {
  constexpr Nanos kLately = 180 * kSecond;
  std::size_t at_work = 0;
  for (const batch::WorkerNow& worker : batch::workers_now(folder)) {
    words.push_back(report::worker_words(worker.name, worker.pieces, worker.heard));
    if (worker.heard && *worker.heard < kLately) ++at_work;
  }
  return at_work == 0 ? "" : count_of(at_work, "worker");
}

// What else runs beside it: status asks one at a time.
void name_others(const std::string& folder) {
  std::error_code error;
  const auto parent = std::filesystem::absolute(folder, error).lexically_normal().parent_path().string();
  for (const auto& other : batch::running_in(parent.empty() ? "." : parent))
    if (!std::filesystem::equivalent(other, folder, error))
      (void)write_all(STDERR_FILENO,
                      fmt::format("- another batch runs: headroom batch status {}\n", typed_word(other)));
}

bool is_under_way(const std::string& folder) {
  std::vector<std::string> ignored;
  return !(batch::is_shared(folder) ? who_works(folder, ignored) : why_no_answer(batch::holder_of(folder))).empty();
}

// `goes_on`: the batch, so that what is under way by its journal runs.
report::TaskAndState state_of(const batch::KnownTask& task, bool goes_on) {
  using Last = report::LastAttempt;
  report::TaskAndState told{.name = task.name, .state = task.state, .reason = task.reason};
  if (has_ended(task.state)) return told;
  if (goes_on && task.under_way)
    told.state = TaskState::kRunning;
  else if (task.attempts > 0)
    told.last = task.interrupted ? Last::kInterrupted : Last::kOther;
  return told;
}

// A run of a part of the tasks goes on with the others without --only.
std::string without_only(const std::string& command) {
  constexpr std::string_view kOnly = "--only=";
  std::string text;
  for (std::size_t at = 0; at < command.size();) {
    const bool quoted = command[at] == '\'';
    const std::size_t begin = at + (quoted ? 1 : 0);
    const std::size_t end = std::min(quoted ? command.find('\'', begin) : command.find(' ', begin), command.size());
    if (std::string_view(command).substr(begin).starts_with("-- ")) return text + command.substr(at);  // the task's own
    if (std::string_view(command).substr(begin).starts_with(kOnly)) {
      at = std::min(end + (quoted ? 2 : 1), command.size());
      continue;
    }
    const std::size_t next = std::min(end + (quoted ? 2 : 1), command.size());
    text += command.substr(at, next - at);
    at = next;
  }
  return text;
}

void say_how_to_go_on(const batch::Contents& contents, report::StatusAtRest& status) {
  if (!status.ran) return;
  std::int64_t left = 0;
  bool of_earlier = false;
  for (const auto& task : contents.tasks) {
    if (task.superseded || task.state == TaskState::kSucceeded) continue;
    (task.added ? status.added : left) += 1;
    of_earlier = of_earlier || task.run != contents.runs.back().number;
  }
  const std::string& command = contents.runs.back().command;
  if (left > 0) status.command = of_earlier ? without_only(command) : command;
}

// `every`: those as well that a later run asked for in another way, under the same name.
report::StatusAtRest at_rest(const std::string& folder, const batch::Contents& contents, bool every = false) {
  report::StatusAtRest status{.folder = folder, .ran = !contents.runs.empty()};
  if (status.ran) status.last_run = contents.runs.back().end_reason;
  status.no_answer =
      batch::is_shared(folder) ? who_works(folder, status.workers) : why_no_answer(batch::holder_of(folder));
  for (const auto& task : contents.tasks) {
    if (task.superseded && !every) continue;
    status.tasks.push_back(state_of(task, !status.no_answer.empty()));
  }
  say_how_to_go_on(contents, status);
  return status;
}

tl::unexpected<Error> not_readable(const std::string& folder) {
  return fail(Errc::kIo, fmt::format("what listens in {} gave no answer that a batch gives", folder),
              "it may be a batch of another version of headroom: ask with that one");
}

// The folder that is asked about. What it holds is read, a journal that its writer died in mended: of a folder that
// somebody else made, only on request.
Result<std::string> folder_to_read(const Questions& asked) {
  HR_TRY(std::string folder, batch::find_folder(asked.folder));
  if (!asked.trust_folder) HR_TRYV(batch::check_own(folder));
  return folder;
}

Result<int> status(const Questions& asked) {
  HR_TRY(const std::string folder, folder_to_read(asked));
  if (asked.json) {
    HR_TRY(const std::string text, batch_status_json(folder));
    put(text);
    return kExitOk;
  }
  name_others(folder);
  if (const auto answer = batch::ask(folder, "status")) {
    const std::string text = report::status_text(*answer);
    if (text.empty()) return not_readable(folder);
    put(text);
    return kExitOk;
  }
  HR_TRY(const batch::Contents contents, batch::read_journal(folder));
  put(report::to_text(at_rest(folder, contents)));
  return kExitOk;
}

// They look for the word now and then; on machines that are not this one they can be told nothing else.
Result<int> stop_workers(const Questions& asked, const std::string& folder) {
  if (asked.now)
    return fail(Errc::kUnsupported,
                "batch stop --now: the workers of a shared batch are told by a file to start nothing more",
                "headroom batch stop does that; to end them at once, signal each (scancel, kill)");
  HR_TRYV(batch::ask_all_to_stop(folder));
  put("No worker starts anything more; what runs may end.\n");
  return kExitOk;
}

// Of one worker alone it is the folder of that worker that is asked.
Result<std::string> folder_to_ask(const Questions& asked) {
  HR_TRY(std::string folder, batch::find_folder(asked.folder));
  if (batch::is_shared(folder))
    return fail(Errc::kUnsupported, fmt::format("the batch in {} is that of several workers", folder),
                fmt::format("name the folder of one: {}/workers/NAME", folder));
  return folder;
}

Result<int> cancel(const Questions& asked) {
  if (asked.patterns.empty() != asked.every)
    return fail(Errc::kInvalidInput, "batch cancel: name tasks, or give --all",
                "names, or patterns in quotes: headroom batch cancel 'lr0.1*'");
  HR_TRY(const std::string folder, folder_to_ask(asked));
  const std::vector<std::string> patterns = asked.every ? std::vector<std::string>{"*"} : asked.patterns;
  HR_TRY(const std::string answer,
         batch::ask(folder, std::string(batch::kCancelRequest) + batch::words_text(patterns)));
  HR_TRY(const std::int64_t count, batch::done_of(answer));
  put(fmt::format("Cancelled {}.\n", count_of(count, "task")));
  return kExitOk;
}

// What Ctrl-C does in its terminal, once or twice.
Result<int> stop(const Questions& asked) {
  HR_TRY(const std::string folder, batch::find_folder(asked.folder));
  if (batch::is_shared(folder)) return stop_workers(asked, folder);
  HR_TRY(const std::string answer,
         batch::ask(folder, std::string(asked.now ? batch::kStopNowRequest : batch::kStopRequest)));
  HR_TRY(const std::int64_t running, batch::done_of(answer));
  const std::string what = count_of(running, "running task");
  const std::string words =
      running == 0 ? "Nothing more is started.\n"
      : asked.now
          ? fmt::format("Nothing more is started; {} being stopped.\n", what + (running == 1 ? " is" : " are"))
          : fmt::format("Nothing more is started; {} may end (--now stops {}).\n", what, running == 1 ? "it" : "them");
  put(words);
  return kExitOk;
}

// The tasks are those that a batch of their own would have; the running one takes them, in its journal first.
Result<int> add(const Questions& asked) {
  HR_TRY(const std::string folder, folder_to_ask(asked));
  batch::Request request = asked.added;
  request.after_dashes = *asked.after_dashes;
  HR_TRY(tasks::TaskSet set, batch::read_tasks(request));
  for (TaskSpec& task : set.tasks) task.working_directory = batch::directory_of(task, current_directory());
  HR_TRY(const std::string text, batch::tasks_text(set.tasks));
  HR_TRY(const std::string answer, batch::ask(folder, std::string(batch::kAddRequest) + text));
  HR_TRY(const std::int64_t count, batch::done_of(answer));
  const auto there = static_cast<std::int64_t>(set.tasks.size()) - count;
  print("Added {}{}. They belong to this run: to go on with them later, add them again.\n", count_of(count, "task"),
        there > 0 ? fmt::format("; {} it had already", there) : "");
  return kExitOk;
}

Result<int> table(const Questions& asked) {
  HR_TRY(const std::string folder,
         asked.recording.empty() ? folder_to_read(asked) : path_of_recording(asked.recording));
  HR_TRY(const batch::Contents contents,
         asked.recording.empty() ? batch::read_journal(folder) : batch::read_copied_journal(folder));
  std::vector<std::vector<const Attempt*>> attempts(contents.tasks.size());
  for (const auto& attempt : contents.attempts) attempts[attempt.task].push_back(&attempt);
  const bool goes_on = asked.recording.empty() && is_under_way(folder);
  const Nanos now = realtime_now();
  std::vector<report::TableRow> rows;
  for (std::size_t i = 0; i < contents.tasks.size(); ++i) {
    const auto& task = contents.tasks[i];
    if (!task.superseded || asked.every)
      rows.push_back(report::table_row(state_of(task, goes_on), task.parameters, attempts[i], now));
  }
  if (!asked.sort.empty()) HR_TRYV(report::sort_table(rows, asked.sort, asked.reverse));
  const std::string text = asked.json  ? report::table_json(rows)
                           : asked.csv ? report::table_csv(rows)
                                       : report::table_text(rows, text_options(STDOUT_FILENO).width);
  put(text);
  return kExitOk;
}

// nullptr: it has not run yet.
const Attempt* latest_attempt(const batch::Contents& contents, const std::string& task) {
  const auto latest = std::find_if(contents.attempts.rbegin(), contents.attempts.rend(),
                                   [&](const Attempt& attempt) { return contents.tasks[attempt.task].name == task; });
  return latest == contents.attempts.rend() ? nullptr : &*latest;
}

// Prints the log of the task's latest attempt; to follow is to go on until the task has ended, further attempts
// included.
Result<int> show_log(const std::string& folder, const std::string& task, bool follow) {
  constexpr Nanos kPause = 200 * kMillisecond;
  constexpr std::size_t kPiece = 1 << 16;
  std::optional<AttemptId> shown;
  std::optional<batch::LogTail> tail;
  for (;;) {
    const Nanos begin = boottime_now();
    HR_TRY(const batch::Contents contents, batch::read_journal(folder));
    const Attempt* latest = latest_attempt(contents, task);
    const bool ended = latest != nullptr && has_ended(contents.tasks[latest->task].state);
    const bool running = batch::ask(folder, "ping").has_value();
    const bool last = !follow || !running || (latest != nullptr && latest->end);
    if (latest != nullptr && shown != latest->id) {
      shown = latest->id;
      if (latest->end && ::access(latest->log_path.c_str(), F_OK) != 0)
        return tl::unexpected(errno_error("open " + latest->log_path));
      tail.emplace(latest->log_path);
    }
    if (tail)
      for (std::string text = tail->read(kPiece, last); !text.empty(); text = tail->read(kPiece, last))
        if (!put(text)) return kExitOk;  // the reader has gone
    if (!follow || !running || ended) break;
    const Nanos pause =
        std::max(kPause, 5 * (boottime_now() - begin));  // a journal of many tasks takes a while to read
    const timespec rest{.tv_sec = pause / kSecond, .tv_nsec = pause % kSecond};
    ::nanosleep(&rest, nullptr);
  }
  if (!shown) (void)write_all(STDERR_FILENO, "It has not run yet.\n");
  return kExitOk;
}

// The attempts that were asked for.
std::vector<report::NamedAttempt> chosen_attempts(const batch::Contents& contents, const Questions& asked) {
  std::vector<report::NamedAttempt> chosen;
  for (const auto& attempt : contents.attempts) {
    const auto& task = contents.tasks[attempt.task];
    if (task.superseded && !asked.every) continue;
    const bool failed = attempt.outcome && *attempt.outcome != AttemptOutcome::kSucceeded;
    if (asked.failed ? failed && task.state == TaskState::kFailed : asked.task.empty() || task.name == asked.task)
      chosen.push_back({.task = task.name, .parameters = task.parameters, .attempt = attempt});
  }
  return chosen;
}

// kNotFound: no task has the name that was asked for.
Result<void> is_a_task(const batch::Contents& contents, const std::string& folder, const std::string& asked) {
  std::vector<std::string_view> names;
  for (const auto& task : contents.tasks) names.push_back(task.name);
  if (std::find(names.begin(), names.end(), asked) != names.end()) return {};
  const auto guess = closest(asked, names);
  return fail(Errc::kNotFound, fmt::format("there is no task '{}' in {}", asked, folder),
              guess.empty() ? "headroom batch show lists them" : fmt::format("did you mean '{}'?", guess));
}

std::string list_of_tasks(const std::string& folder, const batch::Contents& contents, bool every) {
  std::string text = report::task_list(at_rest(folder, contents, every).tasks);
  const auto hidden = every ? 0 : std::count_if(contents.tasks.begin(), contents.tasks.end(), [](const auto& task) {
    return task.superseded;
  });
  if (hidden > 0)
    text += fmt::format(
        "{} of earlier runs, with another command, other parameters or other inputs, {} not shown (--all).\n",
        count_of(hidden, "task"), hidden == 1 ? "is" : "are");
  return text;
}

std::string text_of_attempts(const std::vector<report::NamedAttempt>& chosen, bool failed) {
  if (chosen.empty()) return failed ? "No task has failed.\n" : "It has not run yet.\n";
  std::string text;
  for (const auto& one : chosen) text += report::to_text(one, text_options(STDOUT_FILENO));
  return text;
}

Result<int> show_asked_log(const std::string& folder, const Questions& asked) {
  if (!asked.recording.empty())
    return fail(Errc::kInvalidInput, "batch show: a recording holds no logs", "leave out --recording");
  if (asked.task.empty())
    return fail(Errc::kInvalidInput, "batch show: --log and --follow need the name of a task",
                "headroom batch show lists them; headroom batch --follow TASKS shows all while they run");
  return show_log(folder, asked.task, asked.follow);
}

Result<int> show(const Questions& asked) {
  HR_TRY(const std::string folder,
         asked.recording.empty() ? folder_to_read(asked) : path_of_recording(asked.recording));
  HR_TRY(const batch::Contents contents,
         asked.recording.empty() ? batch::read_journal(folder) : batch::read_copied_journal(folder));
  if (!asked.task.empty()) HR_TRYV(is_a_task(contents, folder, asked.task));
  if (asked.log || asked.follow) return show_asked_log(folder, asked);
  const std::vector<report::NamedAttempt> chosen = chosen_attempts(contents, asked);
  if (asked.json)
    put(report::to_json(chosen));
  else if (asked.task.empty() && !asked.failed)
    put(list_of_tasks(folder, contents, asked.every));
  else
    put(text_of_attempts(chosen, asked.failed));
  return kExitOk;
}

void declare_common(CLI::App& sub, Questions& asked) {
  sub.add_option("--folder", asked.folder, "the batch's folder or task file; default: the latest here")
      ->type_name("DIR");
  sub.add_flag("--json", asked.json, "print JSON");
}

void declare_reading(CLI::App& sub, Questions& asked) {
  declare_common(sub, asked);
  sub.add_flag("--trust-folder", asked.trust_folder, "read a folder that others own or may write to");
}

void declare_questions_of_running(CLI::App& app, Questions& asked) {
  asked.status = app.add_subcommand("status", "how far the batch is");
  asked.status->add_option("BATCH", asked.folder, "the same as --folder");
  declare_reading(*asked.status, asked);
  asked.cancel = app.add_subcommand("cancel", "stop tasks of a running batch, or keep them from starting");
  asked.cancel->add_option("TASK", asked.patterns, "names, or patterns in quotes: 'lr0.1*'")->type_name("");
  asked.cancel->add_flag("--all", asked.every, "all that have not ended");
  declare_common(*asked.cancel, asked);
  asked.add = app.add_subcommand("add", "put further tasks into a running batch: a task file, - or -- CMD {} ::: A B");
  asked.add->add_option("TASKS", asked.added.words, "as for headroom batch")->type_name("");
  asked.add->add_option("--command", asked.added.command, "command for a list of parameters")->type_name("CMD");
  asked.add->add_flag("--shell", asked.added.shell, "--command is a shell line");
  asked.add->add_option("--retries", asked.added.retries, "further attempts of a task that fails (lists)")
      ->check(CLI::Range(0, 1'000'000));
  asked.add->add_option("--timeout", asked.added.timeout, "of an attempt (lists)")
      ->type_name("DURATION")
      ->check(duration_check());
  asked.add
      ->add_option("--second-pin", asked.added.second_pin,
                   "a command that chooses a GPU itself: refuse (default), rewrite, allow")
      ->check(CLI::IsMember({"refuse", "rewrite", "allow"}));
  declare_common(*asked.add, asked);
  asked.stop = app.add_subcommand("stop", "end a running batch: what runs may finish, nothing more is started");
  asked.stop->add_option("BATCH", asked.folder, "the same as --folder")->type_name("");
  asked.stop->add_flag("--now", asked.now, "stop what runs as well");
  declare_common(*asked.stop, asked);
}

void declare_questions_of_tasks(CLI::App& app, Questions& asked) {
  asked.table = app.add_subcommand("table", "all tasks with their parameters, metrics, time and GPU memory");
  asked.table->add_option("BATCH", asked.folder, "the same as --folder")->type_name("");
  asked.table->add_option("--sort", asked.sort, "by a metric, a parameter, task, time or gpu_memory")
      ->type_name("NAME");
  asked.table->add_flag("--reverse", asked.reverse, "the largest first");
  asked.table->add_flag("--csv", asked.csv, "as CSV, numbers in full");
  asked.table->add_option("--recording", asked.recording, "of a batch that has ended, instead of its folder")
      ->type_name("RECORDING");
  asked.table->add_flag("--all", asked.every,
                        "tasks of earlier runs as well, of which a later one changed the command");
  declare_reading(*asked.table, asked);
  asked.show = app.add_subcommand("show", "what is known of a task, of those that failed, or a list");
  asked.show->add_option("TASK", asked.task, "its name");
  asked.show->add_flag("--all", asked.every, "tasks of earlier runs as well, of which a later one changed the command");
  asked.show->add_flag("--failed", asked.failed, "the tasks that failed");
  asked.show->add_option("--recording", asked.recording, "of a batch that has ended, instead of its folder")
      ->type_name("RECORDING");
  asked.show->add_flag("--log", asked.log, "what the task's latest attempt printed, byte for byte");
  asked.show->add_flag("--follow", asked.follow, "likewise, and go on until the task has ended");
  declare_reading(*asked.show, asked);
}

}  // namespace

Result<std::string> batch_status_json(const std::string& folder) {
  if (const auto answer = batch::ask(folder, "status")) {
    std::string text = report::status_json(*answer);
    if (text.empty()) return not_readable(folder);
    return text;
  }
  HR_TRY(const batch::Contents contents, batch::read_journal(folder));
  return report::to_json(at_rest(folder, contents));
}

std::function<std::optional<int>()> declare_batch_questions(CLI::App& app,
                                                            const std::vector<std::string>& after_dashes) {
  auto asked = std::make_shared<Questions>();
  asked->after_dashes = &after_dashes;
  declare_questions_of_running(app, *asked);
  declare_questions_of_tasks(app, *asked);
  return [asked]() -> std::optional<int> {
    const std::pair<const CLI::App*, Result<int> (*)(const Questions&)> answers[] = {
        {asked->status, status}, {asked->cancel, cancel}, {asked->stop, stop},
        {asked->add, add},       {asked->show, show},     {asked->table, table}};
    const auto found =
        std::find_if(std::begin(answers), std::end(answers), [](const auto& answer) { return answer.first->parsed(); });
    if (found == std::end(answers)) return std::nullopt;
    const auto code = found->second(*asked);
    return code ? *code : report_error(code.error());
  };
}

}  // namespace headroom::cli
