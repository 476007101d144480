// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "batch/attempt_book.h"
#include "batch/clock.h"
#include "batch/executor/executor.h"
#include "batch/journal_writer.h"
#include "batch/messages.h"

namespace headroom::batch {

// Attempts on their way from the plan to the executor. Nothing starts that is not written down, or whose output has no
// room; what cannot start now is tried again.
class StartQueue {
 public:
  struct Parts {
    AttemptBook& book;
    JournalWriter& journal;
    Executor& executor;
    Messages& messages;
    const Clock& clock;
    std::string folder;  // for people: whose disk is full
  };
  explicit StartQueue(Parts parts) : parts_(std::move(parts)) {}

  void add(AttemptId attempt) { prepared_.push_back(attempt); }
  [[nodiscard]] bool empty() const { return prepared_.empty(); }
  // Those that are not wanted any more: stopped while they waited, or all of them when the batch ends.
  [[nodiscard]] std::vector<AttemptId> take_unwanted(bool batch_ends);
  // Commits the journal, then starts what is in the queue. `not_started`: tasks that wait for a place, for people.
  void run(std::int64_t not_started);
  // The executor could not start one, for a reason that will pass: nothing is started for a while, longer each time.
  void refused(const std::string& why);
  void started();  // one
  void ended();    // likewise: there may be room for another
  [[nodiscard]] std::size_t size() const { return prepared_.size(); }
  // When to call run() again, whatever else happens; absent: no need.
  [[nodiscard]] std::optional<Nanos> due() const { return due_; }
  // What keeps those in the queue from starting, for people: "until …"; "" where nothing does.
  [[nodiscard]] std::string why_waiting() const;
  [[nodiscard]] bool journal_fails() const { return journal_fails_; }
  // Nothing can start any more, and all that waits is in vain.
  [[nodiscard]] bool folder_removed() const { return folder_removed_; }

 private:
  [[nodiscard]] bool room(std::int64_t not_started);
  void tell_refusal(std::int64_t not_started);

  Parts parts_;
  std::vector<AttemptId> prepared_;
  std::optional<Nanos> due_;
  bool journal_fails_ = false, no_room_ = false, folder_removed_ = false;
  struct {
    std::string why;  // not told yet
    Nanos until = 0, pause = 0, last = 0;
    Nanos since = 0;  // when the pause became as long as it is
    bool told = false;
  } refused_;
};

}  // namespace headroom::batch
