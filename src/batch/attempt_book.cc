// SPDX-License-Identifier: Apache-2.0
#include "batch/attempt_book.h"

namespace headroom::batch {

void AttemptBook::prepare(BookedAttempt attempt) {
  journal_.note_started(attempt.facts, keys_[attempt.facts.task]);
  const AttemptId id = attempt.facts.id;
  attempts_.emplace(id, std::move(attempt));
}

BookedAttempt* AttemptBook::find(AttemptId id) {
  const auto found = attempts_.find(id);
  return found == attempts_.end() ? nullptr : &found->second;
}

BookedAttempt* AttemptBook::under_way(AttemptId id) {
  BookedAttempt* attempt = find(id);
  return attempt != nullptr && attempt->stage != Stage::kEnded ? attempt : nullptr;
}

std::vector<BookedAttempt*> AttemptBook::all(Stage stage) {
  std::vector<BookedAttempt*> found;
  for (auto& [id, attempt] : attempts_)
    if (attempt.stage == stage) found.push_back(&attempt);
  return found;
}

std::vector<const BookedAttempt*> AttemptBook::all(Stage stage) const {
  std::vector<const BookedAttempt*> found;
  for (const auto& [id, attempt] : attempts_)
    if (attempt.stage == stage) found.push_back(&attempt);
  return found;
}

void AttemptBook::identified(AttemptId id, std::int64_t pid, std::optional<Nanos> process_start) {
  BookedAttempt* attempt = under_way(id);
  if (attempt == nullptr) return;
  attempt->facts.pid = pid;
  attempt->facts.process_start = process_start;
  journal_.note_process(id, pid, process_start);
}

std::optional<BookedAttempt> AttemptBook::close(AttemptId id, AttemptOutcome outcome) {
  auto node = attempts_.extract(id);
  if (node.empty()) return std::nullopt;
  Attempt& facts = node.mapped().facts;
  facts.outcome = outcome;
  if (outcome == AttemptOutcome::kSucceeded) facts.reason.clear();
  journal_.note_ended(facts);
  return std::move(node.mapped());
}

void AttemptBook::end_task(TaskIndex task, TaskState state, const std::string& reason, const std::string& fingerprint) {
  journal_.note_task(keys_[task], state, reason);
  if (state == TaskState::kSucceeded && !fingerprint.empty()) journal_.note_fingerprint(keys_[task], fingerprint);
}

}  // namespace headroom::batch
