// SPDX-License-Identifier: Apache-2.0
#include "cli/batch_ask.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/human.h"
#include "base/strings.h"
#include "batch/control.h"
#include "batch/journal.h"
#include "batch/task_logs.h"
#include "cli/batch_view.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "report/batch.h"

namespace headroom::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct Questions {
  std::string folder, task, recording;
  bool json = false, failed = false, log = false, follow = false;
  CLI::App* status = nullptr;
  CLI::App* cancel = nullptr;
  CLI::App* show = nullptr;
};

// The batch in `parent` that was written last; "" where there is none.
std::string latest_in(const std::string& parent) {
  std::error_code error;
  std::string latest;
  fs::file_time_type newest{};
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error)) {
    const std::string folder = entry->path().string();
    const auto journal = batch::journal_path(folder);
    std::error_code none;
    if (entry->path().extension() != ".batch" || !fs::exists(journal, none)) continue;
    auto time = fs::last_write_time(journal, none);
    if (const auto log = fs::last_write_time(journal + "-wal", none); !none) time = std::max(time, log);
    if (latest.empty() || time > newest) latest = folder, newest = time;
  }
  return latest;
}

// The batch's folder itself, that of a task file, or the latest one in a folder.
Result<std::string> find_folder(const std::string& given) {
  std::error_code error;
  if (given.empty()) {
    const std::string latest = latest_in(".");
    if (!latest.empty()) return latest;
    return fail(Errc::kNotFound, "there is no batch in this folder",
                "name the batch's folder, its task file, or the folder that it is in");
  }
  if (fs::exists(batch::journal_path(given), error)) return given;
  const std::string beside = fs::path(given).replace_extension(".batch").string();
  if (fs::exists(batch::journal_path(beside), error)) return beside;
  if (const std::string latest = latest_in(given); !latest.empty()) return latest;
  return fail(Errc::kNotFound, fmt::format("there is no batch in {} or {}", given, beside),
              "name the batch's folder, its task file, or the folder that it is in");
}

std::string text_of_status(const ordered_json& status) {
  std::string text = status.value("summary", "") + "\n";
  for (const auto& gpu : status["gpus"]) text += gpu.value("text", "") + "\n";
  for (const auto& task : status["running"])
    text +=
        fmt::format("  {}  for {}\n", task.value("task", ""), human_duration(task.value("for_ns", std::int64_t{0})));
  if (const auto why = status.value("waiting_for", ""); !why.empty())
    text += fmt::format("The next task waits: {}.\n", why);
  return text;
}

std::string counts_of(const batch::Contents& contents) {
  std::map<std::string_view, std::int64_t> counts;
  for (const auto& task : contents.tasks)
    counts[task.state == TaskState::kReady ? "not run yet" : name(task.state)] += 1;
  std::vector<std::string> words;
  for (const auto& [state, count] : counts) words.push_back(fmt::format("{} {}", count, state));
  return fmt::format("{} {}: {}", contents.tasks.size(), contents.tasks.size() == 1 ? "task" : "tasks",
                     join(words, ", "));
}

Result<int> status(const Questions& asked) {
  HR_TRY(const std::string folder, find_folder(asked.folder));
  if (const auto answer = batch::ask(folder, "status")) {
    const auto json = ordered_json::parse(*answer, nullptr, false);
    if (!json.is_object()) return fail(Errc::kIo, "the batch gave no answer that could be read");
    (void)write_all(STDOUT_FILENO, asked.json ? *answer : text_of_status(json));
    return kExitOk;
  }
  HR_TRY(const batch::Contents contents, batch::read_journal(folder));
  const std::string reason = contents.runs.empty() ? "" : contents.runs.back().end_reason;
  if (asked.json) {
    ordered_json tasks = ordered_json::object();
    for (const auto& info : kTaskStates) tasks[std::string(info.name)] = 0;
    for (const auto& task : contents.tasks) {
      auto& count = tasks[std::string(name(task.state))];
      count = count.get<int>() + 1;
    }
    const ordered_json json{
        {"schema", "headroom.batch-status/1"}, {"running_now", false}, {"last_run", reason}, {"tasks", tasks}};
    (void)write_all(STDOUT_FILENO, json.dump(1) + "\n");
    return kExitOk;
  }
  std::string text = fmt::format("No batch is running in {}; the last run {}.\n{}\n", folder,
                                 reason.empty() ? "was killed" : reason, counts_of(contents));
  if (!contents.runs.empty()) text += fmt::format("Go on with: {}\n", contents.runs.back().command);
  (void)write_all(STDOUT_FILENO, text);
  return kExitOk;
}

Result<int> cancel(const Questions& asked) {
  HR_TRY(const std::string folder, find_folder(asked.folder));
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
    HR_TRY(folder, find_folder(asked.folder));
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
    text = counts_of(contents) + "\n";
    for (const auto& task : contents.tasks)
      text += fmt::format("  {:<11} {}{}\n", task.state == TaskState::kReady ? "not run yet" : name(task.state),
                          task.name, task.reason.empty() ? "" : ": " + task.reason);
  } else {
    for (const auto& one : chosen) text += report::to_text(one.attempt, one.task, text_options(STDOUT_FILENO));
    if (chosen.empty()) text = asked.failed ? "No task has failed.\n" : "It has not run yet.\n";
  }
  (void)write_all(STDOUT_FILENO, text);
  return kExitOk;
}

}  // namespace

std::string progress_json(const BatchProgress& progress) {
  const auto& counts = progress.tasks;
  ordered_json gpus = ordered_json::array(), running = ordered_json::array();
  for (const auto& gpu : progress.gpus)
    gpus.push_back({{"uuid", gpu.gpu.uuid},
                    {"index", gpu.gpu.index},
                    {"running", gpu.running},
                    {"memory_used_bytes", gpu.used_bytes ? ordered_json(*gpu.used_bytes) : ordered_json(nullptr)},
                    {"gpu_util_ratio", gpu.util_ratio ? ordered_json(*gpu.util_ratio) : ordered_json(nullptr)},
                    {"usable", gpu.usable},
                    {"text", gpu_words(gpu)}});
  constexpr std::size_t kShown = 100;
  for (std::size_t i = 0; i < std::min(progress.running.size(), kShown); ++i)
    running.push_back({{"task", progress.running[i].task}, {"for_ns", progress.running[i].elapsed}});
  const ordered_json json{{"schema", "headroom.batch-status/1"},
                          {"running_now", true},
                          {"tasks",
                           {{"total", counts.total},
                            {"waiting", counts.waiting},
                            {"ready", counts.ready},
                            {"running", counts.running},
                            {"backing_off", counts.backing_off},
                            {"succeeded", counts.succeeded},
                            {"failed", counts.failed},
                            {"skipped", counts.skipped},
                            {"cancelled", counts.cancelled}}},
                          {"elapsed_ns", progress.elapsed},
                          {"left_ns", progress.left ? ordered_json(*progress.left) : ordered_json(nullptr)},
                          {"gpus", gpus},
                          {"running", running},
                          {"waiting_for", progress.waiting_for},
                          {"ending", progress.draining},
                          {"summary", fmt::format("{}  {} running", progress_words(progress), counts.running)}};
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

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
