// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "model/batch.h"

namespace headroom::batch {

// Position of a task in the journal: stays when the task file changes.
using TaskKey = std::int64_t;

// What a running batch writes down. What is noted is queued until commit().
class JournalWriter {
 public:
  JournalWriter() = default;
  JournalWriter(const JournalWriter&) = delete;
  JournalWriter& operator=(const JournalWriter&) = delete;
  virtual ~JournalWriter() = default;

  [[nodiscard]] virtual AttemptId next_attempt() const = 0;
  virtual void note_started(const Attempt& attempt, TaskKey task) = 0;  // before it starts
  virtual void note_process(AttemptId attempt, std::int64_t pid, std::optional<Nanos> process_start) = 0;
  virtual void note_ended(const Attempt& attempt) = 0;
  virtual void note_task(TaskKey task, TaskState state, const std::string& reason) = 0;
  virtual void note_fingerprint(TaskKey task, const std::string& fingerprint) = 0;
  [[nodiscard]] virtual bool pending() const = 0;
  [[nodiscard]] virtual std::size_t results_pending() const = 0;  // ends of attempts among them
  // On an error everything stays queued, to be tried again.
  [[nodiscard]] virtual Result<void> commit() = 0;
  // What somebody has done to its files meanwhile, in words; "" for nothing. Asked once a second.
  [[nodiscard]] virtual std::string damage() { return ""; }
};

}  // namespace headroom::batch
