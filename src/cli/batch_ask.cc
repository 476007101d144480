// SPDX-License-Identifier: Apache-2.0
#include "cli/batch_ask.h"

#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/strings.h"
#include "batch/control.h"
#include "batch/folder.h"
#include "batch/journal.h"
#include "batch/task_logs.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "report/batch.h"
#include "report/batch_status.h"

namespace headroom::cli {

namespace {

struct Questions {
  std::string folder, task, recording;
  bool json = false, failed = false, log = false, follow = false;
  CLI::App* status = nullptr;
  CLI::App* cancel = nullptr;
  CLI::App* show = nullptr;
};

report::StatusAtRest at_rest(const std::string& folder, const batch::Contents& contents) {
  report::StatusAtRest status{.folder = folder, .ran = !contents.runs.empty()};
  if (status.ran) status.last_run = contents.runs.back().end_reason, status.command = contents.runs.back().command;
  for (const auto& task : contents.tasks)
    status.tasks.push_back({.name = task.name, .state = task.state, .reason = task.reason});
  return status;
}

Result<int> status(const Questions& asked) {
  HR_TRY(const std::string folder, batch::find_folder(asked.folder));
  if (const auto answer = batch::ask(folder, "status")) {
    const std::string text = report::status_text(*answer);
    if (text.empty()) return fail(Errc::kIo, "the batch gave no answer that could be read");
    (void)write_all(STDOUT_FILENO, asked.json ? *answer : text);
    return kExitOk;
  }
  HR_TRY(const batch::Contents contents, batch::read_journal(folder));
  const report::StatusAtRest status = at_rest(folder, contents);
  (void)write_all(STDOUT_FILENO, asked.json ? report::to_json(status) : report::to_text(status));
  return kExitOk;
}

Result<int> cancel(const Questions& asked) {
  HR_TRY(const std::string folder, batch::find_folder(asked.folder));
  HR_TRY(const std::string answer, batch::ask(folder, "cancel " + asked.task));
  if (answer == "ok\n") return kExitOk;
  const auto lines = split(answer, '\n');
  std::string_view what = lines.front();
  if (what.starts_with("error ")) what.remove_prefix(6);
  return fail(Errc::kNotFound, std::string(what), lines.size() > 1 ? std::string(lines[1]) : "");
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
    const Attempt* latest = nullptr;
    bool ended = false;
    for (const auto& attempt : contents.attempts) {
      if (contents.tasks[attempt.task].name != task) continue;
      latest = &attempt;
      ended = has_ended(contents.tasks[attempt.task].state);
    }
    const bool running = batch::ask(folder, "ping").has_value();
    const bool last = !follow || !running || (latest != nullptr && latest->end);
    if (latest != nullptr && shown != latest->id) {
      shown = latest->id;
      tail.emplace(latest->log_path);
    }
    if (tail)
      for (std::string text = tail->read(kPiece, last); !text.empty(); text = tail->read(kPiece, last))
        if (!write_all(STDOUT_FILENO, text)) return kExitOk;  // the reader has gone
    if (!follow || !running || ended) break;
    const Nanos pause =
        std::max(kPause, 5 * (boottime_now() - begin));  // a journal of many tasks takes a while to read
    const timespec rest{.tv_sec = pause / kSecond, .tv_nsec = pause % kSecond};
    ::nanosleep(&rest, nullptr);
  }
  if (!shown) (void)write_all(STDERR_FILENO, "It has not run yet.\n");
  return kExitOk;
}

Result<int> show(const Questions& asked) {
  std::string folder = asked.recording;
  if (folder.empty()) {
    HR_TRY(folder, batch::find_folder(asked.folder));
  }
  HR_TRY(const batch::Contents contents,
         asked.recording.empty() ? batch::read_journal(folder) : batch::read_copied_journal(folder));
  std::vector<report::NamedAttempt> chosen;
  std::vector<std::string_view> names;
  for (const auto& task : contents.tasks) names.push_back(task.name);
  for (const auto& attempt : contents.attempts) {
    const auto& task = contents.tasks[attempt.task];
    const bool failed = attempt.outcome && *attempt.outcome != AttemptOutcome::kSucceeded;
    if (asked.failed ? failed && task.state == TaskState::kFailed : asked.task.empty() || task.name == asked.task)
      chosen.push_back({.task = task.name, .attempt = attempt});
  }
  if (!asked.task.empty() && std::find(names.begin(), names.end(), asked.task) == names.end()) {
    const auto guess = closest(asked.task, names);
    return fail(Errc::kNotFound, fmt::format("there is no task '{}' in {}", asked.task, folder),
                guess.empty() ? "headroom batch show lists them" : fmt::format("did you mean '{}'?", guess));
  }
  if (asked.log || asked.follow) {
    if (!asked.recording.empty())
      return fail(Errc::kInvalidInput, "batch show: a recording holds no logs", "leave out --recording");
    if (asked.task.empty())
      return fail(Errc::kInvalidInput, "batch show: --log and --follow need the name of a task",
                  "headroom batch show lists them; headroom batch --follow TASKS shows all while they run");
    return show_log(folder, asked.task, asked.follow);
  }
  if (asked.json) {
    (void)write_all(STDOUT_FILENO, report::to_json(chosen));
    return kExitOk;
  }
  std::string text;
  if (asked.task.empty() && !asked.failed) {
    text = report::task_list(at_rest(folder, contents).tasks);
  } else {
    for (const auto& one : chosen) text += report::to_text(one.attempt, one.task, text_options(STDOUT_FILENO));
    if (chosen.empty()) text = asked.failed ? "No task has failed.\n" : "It has not run yet.\n";
  }
  (void)write_all(STDOUT_FILENO, text);
  return kExitOk;
}

}  // namespace

std::function<std::optional<int>()> declare_batch_questions(CLI::App& app) {
  auto asked = std::make_shared<Questions>();
  const auto common = [&](CLI::App* sub) {
    sub->add_option("--folder", asked->folder, "the batch's folder or task file; default: the latest here")
        ->type_name("DIR");
    sub->add_flag("--json", asked->json, "print JSON");
  };
  asked->status = app.add_subcommand("status", "how far the batch is");
  asked->status->add_option("BATCH", asked->folder, "the same as --folder");
  common(asked->status);
  asked->cancel = app.add_subcommand("cancel", "stop a task of a running batch, or keep it from starting");
  asked->cancel->add_option("TASK", asked->task, "its name")->required();
  common(asked->cancel);
  asked->show = app.add_subcommand("show", "what is known of a task, of those that failed, or a list");
  asked->show->add_option("TASK", asked->task, "its name");
  asked->show->add_flag("--failed", asked->failed, "the tasks that failed");
  asked->show->add_option("--recording", asked->recording, "of a batch that has ended, instead of its folder")
      ->type_name("FILE");
  asked->show->add_flag("--log", asked->log, "what the task's latest attempt printed");
  asked->show->add_flag("--follow", asked->follow, "likewise, and go on until the task has ended");
  common(asked->show);
  return [asked]() -> std::optional<int> {
    if (!asked->status->parsed() && !asked->cancel->parsed() && !asked->show->parsed()) return std::nullopt;
    const auto code = asked->status->parsed()   ? status(*asked)
                      : asked->cancel->parsed() ? cancel(*asked)
                                                : show(*asked);
    return code ? *code : report_error(code.error());
  };
}

}  // namespace headroom::cli
