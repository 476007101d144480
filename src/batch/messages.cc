// SPDX-License-Identifier: Apache-2.0
#include "batch/messages.h"

#include <fmt/format.h>

#include <cctype>

#include "base/human.h"

namespace headroom::batch {

namespace {

constexpr int kSaidInFull = 5;             // of one kind
constexpr std::int64_t kBadBeginning = 5;  // tasks
constexpr std::size_t kMostKinds = 1000;   // more are not told apart any longer

// "prices_12.csv" and "prices_7.csv" are of one kind.
std::string without_numbers(std::string_view text) {
  std::string kind;
  bool in_number = false;
  for (const char c : text) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit || !in_number) kind += digit ? '#' : c;
    in_number = digit;
  }
  return kind;
}

}  // namespace

void EndMessages::expect(const std::vector<TaskSpec>& tasks) {
  for (const TaskSpec& task : tasks) groups_[task.group].tasks += 1;
}

void EndMessages::say(std::vector<Message>& messages, MessageKind kind, const std::string& name,
                      const std::string& text) {
  std::string key = without_numbers(text);
  if (said_.size() >= kMostKinds && !said_.contains(key)) key.clear();
  const int count = ++said_[std::move(key)];
  if (count > kSaidInFull) return;
  messages.push_back({kind, fmt::format("{}: {}", name, text)});
  if (count == kSaidInFull)
    messages.push_back(
        {MessageKind::kFact, "more that end like this are only counted (headroom batch show lists them)"});
}

std::vector<Message> EndMessages::ended(const TaskSpec& task, TaskState state, const std::string& reason) {
  std::vector<Message> messages;
  Group& group = groups_[task.group];
  group.ended += 1;
  if (state == TaskState::kSucceeded) return messages;
  const bool failed = state == TaskState::kFailed;
  say(messages, failed ? MessageKind::kProblem : MessageKind::kFact, task.name,
      reason.empty() ? std::string(name(state)) : reason);
  if (failed) group.failed += 1;
  if (failed && group.failed == kBadBeginning && group.ended == kBadBeginning && group.tasks > kBadBeginning)
    messages.push_back(
        {MessageKind::kProblem,
         fmt::format("the first {} tasks {}all failed, {} have not ended yet: Ctrl-C ends the batch, and "
                     "--max-failures N would",
                     kBadBeginning, groups_.size() > 1 ? fmt::format("of {} ", task.group) : "",
                     group.tasks - group.ended)});
  return messages;
}

std::vector<Message> EndMessages::again(const std::string& task, std::string_view label, const std::string& next) {
  std::vector<Message> messages;
  say(messages, MessageKind::kProblem, task, fmt::format("{}, {}", label, next));
  return messages;
}

void Messages::ended(const TaskSpec& task, TaskState state, const std::string& reason) {
  for (const Message& message : ends_.ended(task, state, reason)) say(message);
}

void Messages::runs_again(const std::string& task, const Again& again) {
  if (again.after == AttemptOutcome::kInterrupted) return;
  const bool oom = again.after == AttemptOutcome::kGpuOutOfMemory || again.after == AttemptOutcome::kHostOutOfMemory;
  std::string next = "runs again";
  if (again.alone)
    next = "runs again alone on its GPU";
  else if (oom && again.reserved_gpu_bytes > 0)
    next = fmt::format("requeued with {} reserved", human_bytes(again.reserved_gpu_bytes));
  else if (again.wait > kSecond / 2)
    next = fmt::format("runs again in {}", human_duration(again.wait));
  for (const Message& message : ends_.again(task, info(again.after).label, next)) say(message);
}

namespace words {

std::string guardian_gone() {
  return "the guardian process was killed: should headroom die as well, its tasks run on until the next resume";
}

std::string left_over(std::int64_t pid, const std::string& name, const std::string& log) {
  return fmt::format("stopped process {} ({}) that {} left behind", pid, name,
                     log.empty() ? "a task" : fmt::format("the task of logs/{}", log));
}

std::string not_ours(std::int64_t pid, const std::string& name) {
  return fmt::format("process {} ({}) became a child of this batch, and may be a task's or somebody else's: left alone",
                     pid, name);
}

std::string cannot_start(const std::string& why, std::size_t running, std::int64_t not_started) {
  return fmt::format(
      "{}: that is want of something on this machine and no fault of the task; it is tried again until it works, at "
      "least every 30 s ({} running, {} not started)",
      why, running, not_started);
}

std::string set_aside(const std::string& task, int deaths) {
  return fmt::format("{}: it was under way in {} runs in a row in which headroom died, so all others come first", task,
                     deaths);
}

std::string draining(std::size_t running) {
  return fmt::format("ending: nothing more is started; {} {} may finish (Ctrl-C again stops them)", running,
                     running == 1 ? "running task" : "running tasks");
}

std::string stopping(std::size_t running) {
  return fmt::format("stopping {} running {}; {} will run again at the next resume", running,
                     running == 1 ? "task" : "tasks", running == 1 ? "it" : "they");
}

std::string too_many_failures(std::size_t failed) {
  return fmt::format("{} {} failed, as many as --max-failures allows", failed, failed == 1 ? "task has" : "tasks have");
}

std::string journal_fails(const std::string& why, std::size_t results_pending) {
  return fmt::format("{}; nothing more is started until it can be written ({} ended, not yet written)", why,
                     results_pending);
}

std::string disk_full(const std::string& folder, const std::string& missing, std::size_t running,
                      std::int64_t not_started) {
  return fmt::format(
      "the disk of {} is full: what tasks print may be lost; nothing more is started until {} are free ({} running, {} "
      "not started)",
      folder, missing, running, not_started);
}

std::string folder_removed(const std::string& folder) {
  return fmt::format(
      "the folder {} was removed while the batch runs: its logs are lost, and no task can start any more", folder);
}

std::string output_not_read(const std::string& task) {
  return fmt::format(
      "{}: reading what it printed took too long: its metrics, parameters and outputs are not known (too many "
      "patterns, "
      "too much output, or a file system that does not answer)",
      task);
}

std::string misplaced(const std::string& task, const std::string& on, const std::string& given, std::int64_t pid) {
  return fmt::format("{}: computes on {}, but was given {} (process {})", task, on, given, pid);
}

std::string not_on_gpu(const std::string& task, Nanos running_for) {
  return fmt::format("{}: no process of it has used a GPU for {}: it may be computing on the CPU", task,
                     human_duration(running_for));
}

std::string recording_stopped(const std::string& why) {
  return fmt::format("the recording has stopped: {}; the batch and its journal go on", why);
}

}  // namespace words

}  // namespace headroom::batch
