// SPDX-License-Identifier: Apache-2.0
#include "batch/notes.h"

#include <fmt/format.h>

#include <cctype>

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

EndNotes::EndNotes(const std::vector<TaskSpec>& tasks) {
  for (const TaskSpec& task : tasks) groups_[task.group].tasks += 1;
}

void EndNotes::say(std::vector<Note>& notes, NoteKind kind, const std::string& name, const std::string& text) {
  std::string key = without_numbers(text);
  if (said_.size() >= kMostKinds && !said_.contains(key)) key.clear();
  const int count = ++said_[std::move(key)];
  if (count > kSaidInFull) return;
  notes.push_back({kind, fmt::format("{}: {}", name, text)});
  if (count == kSaidInFull)
    notes.push_back({NoteKind::kFact, "more that end like this are only counted (headroom batch show lists them)"});
}

std::vector<Note> EndNotes::ended(const TaskSpec& task, TaskState state, const std::string& reason) {
  std::vector<Note> notes;
  Group& group = groups_[task.group];
  group.ended += 1;
  if (state == TaskState::kSucceeded) return notes;
  const bool failed = state == TaskState::kFailed;
  say(notes, failed ? NoteKind::kProblem : NoteKind::kFact, task.name,
      reason.empty() ? std::string(name(state)) : reason);
  if (failed) group.failed += 1;
  if (failed && group.failed == kBadBeginning && group.ended == kBadBeginning && group.tasks > kBadBeginning)
    notes.push_back({NoteKind::kProblem,
                     fmt::format("the first {} tasks {}all failed, {} have not ended yet: Ctrl-C ends the batch, and "
                                 "--max-failures N would",
                                 kBadBeginning, groups_.size() > 1 ? fmt::format("of {} ", task.group) : "",
                                 group.tasks - group.ended)});
  return notes;
}

std::vector<Note> EndNotes::again(const std::string& task, std::string_view label, const std::string& next) {
  std::vector<Note> notes;
  say(notes, NoteKind::kProblem, task, fmt::format("{}, {}", label, next));
  return notes;
}

}  // namespace headroom::batch
