// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/batch.h"

namespace headroom::batch {

enum class NoteKind { kProblem, kFact };

struct Note {
  NoteKind kind = NoteKind::kFact;
  std::string text;
  bool operator==(const Note&) const = default;
};

// What to tell people of tasks that do not succeed: every failure until it repeats itself, and once, early, that a
// group has begun with nothing but failures.
class EndNotes {
 public:
  explicit EndNotes(const std::vector<TaskSpec>& tasks);

  [[nodiscard]] std::vector<Note> ended(const TaskSpec& task, TaskState state, const std::string& reason);
  // An attempt failed, and the task goes on: `next` says how.
  [[nodiscard]] std::vector<Note> again(const std::string& task, std::string_view label, const std::string& next);

 private:
  struct Group {
    std::int64_t tasks = 0, ended = 0, failed = 0;
  };
  // Adds "NAME: TEXT", unless texts that differ from it by numbers only were said often enough.
  void say(std::vector<Note>& notes, NoteKind kind, const std::string& name, const std::string& text);
  std::unordered_map<std::string, Group> groups_;
  std::unordered_map<std::string, int> said_;
};

}  // namespace headroom::batch
