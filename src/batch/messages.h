// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "model/batch.h"

namespace headroom::batch {

enum class MessageKind { kProblem, kFact };

struct Message {
  MessageKind kind = MessageKind::kFact;
  std::string text;
  bool operator==(const Message&) const = default;
};

// What to tell people of tasks that do not succeed: every failure until it repeats itself, and once, early, that a
// group has begun with nothing but failures.
class EndMessages {
 public:
  explicit EndMessages(const std::vector<TaskSpec>& tasks) { expect(tasks); }
  void expect(const std::vector<TaskSpec>& tasks);  // further ones

  [[nodiscard]] std::vector<Message> ended(const TaskSpec& task, TaskState state, const std::string& reason);
  // An attempt failed, and the task goes on: `next` says how.
  [[nodiscard]] std::vector<Message> again(const std::string& task, std::string_view label, const std::string& next);

 private:
  struct Group {
    std::int64_t tasks = 0, ended = 0, failed = 0;
  };
  // Adds "NAME: TEXT", unless texts that differ from it by numbers only were said often enough.
  void say(std::vector<Message>& messages, MessageKind kind, const std::string& name, const std::string& text);
  std::unordered_map<std::string, Group> groups_;
  std::unordered_map<std::string, int> said_;
};

// Everything that a running batch says to people, in one place, and whom it says it to.
class Messages {
 public:
  using Sink = std::function<void(MessageKind, const std::string&)>;
  Messages(Sink sink, const std::vector<TaskSpec>& tasks) : sink_(std::move(sink)), ends_(tasks) {}

  void expect(const std::vector<TaskSpec>& tasks) { ends_.expect(tasks); }
  void say(const Message& message) { sink_(message.kind, message.text); }
  void problem(const std::string& text) { sink_(MessageKind::kProblem, text); }
  void fact(const std::string& text) { sink_(MessageKind::kFact, text); }

  void ended(const TaskSpec& task, TaskState state, const std::string& reason);
  struct Again {
    AttemptOutcome after = AttemptOutcome::kFailed;
    Nanos wait = 0;
    std::int64_t reserved_gpu_bytes = 0;
    bool alone = false;
  };
  void runs_again(const std::string& task, const Again& again);

 private:
  Sink sink_;
  EndMessages ends_;
};

namespace words {
[[nodiscard]] std::string guardian_gone();
// `log`: the name of the log of the attempt that left it; "" where it cannot be told.
[[nodiscard]] std::string left_over(std::int64_t pid, const std::string& name, const std::string& log);
[[nodiscard]] std::string not_ours(std::int64_t pid, const std::string& name);
[[nodiscard]] std::string cannot_start(const std::string& why, std::size_t running, std::int64_t not_started);
[[nodiscard]] std::string set_aside(const std::string& task, int deaths);
[[nodiscard]] std::string draining(std::size_t running);
[[nodiscard]] std::string stopping(std::size_t running);
[[nodiscard]] std::string too_many_failures(std::size_t failed);
[[nodiscard]] std::string journal_fails(const std::string& why, std::size_t results_pending);
// `missing`: what has to be free again.
[[nodiscard]] std::string disk_full(const std::string& folder, const std::string& missing, std::size_t running,
                                    std::int64_t not_started);
[[nodiscard]] std::string folder_removed(const std::string& folder);
[[nodiscard]] std::string output_not_read(const std::string& task);
[[nodiscard]] std::string misplaced(const std::string& task, const std::string& on, const std::string& given,
                                    std::int64_t pid);
[[nodiscard]] std::string not_on_gpu(const std::string& task, Nanos running_for);
[[nodiscard]] std::string recording_stopped(const std::string& why);
}  // namespace words

}  // namespace headroom::batch
