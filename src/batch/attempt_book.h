// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "batch/journal_writer.h"
#include "batch/outcome.h"
#include "model/batch.h"
#include "scheduler/planner.h"

namespace headroom::batch {

// What was seen of an attempt while it ran; filled in by the watch on placement.
struct Sightings {
  std::set<std::string> gpus;             // UUIDs: a process of it held a context there
  std::optional<std::int64_t> gpu_bytes;  // now, on its fullest GPU
  std::optional<double> gpu_util;         // now, of its own kernels
  std::optional<Nanos> first_kernel;
  std::optional<double> gpu_seconds_estimate;  // so far; the ledger says it better once the batch has ended
  std::optional<Nanos> cpu_before, core_wait_before;
  Nanos cpu_at = 0;
  std::optional<double> steps;  // done, by its log
  bool reading_steps = false;   // somebody does
  bool misplaced = false, warned_of_no_gpu = false;
};

enum class Stage : std::uint8_t {
  kPrepared,  // in the journal, but not started
  kStarting,  // the executor was asked
  kRunning,
  kEnded,  // and not yet closed: the planner has to hear of it
};

// An attempt from the planner's wish to its last line in the journal. `start` and `end` are CLOCK_BOOTTIME, the times
// in `facts` are Unix time.
struct BookedAttempt {
  Attempt facts;
  std::vector<scheduler::GpuIndex> gpus;
  Stage stage = Stage::kPrepared;
  Nanos start = 0, end = 0;
  Sightings seen;
  EndEvidence evidence;      // complete once it has ended …
  bool output_read = false;  // … and this is so
};

// The attempts of this run that are not closed yet. Nothing starts and nothing is closed that it has not noted in the
// journal; `keys` are the tasks' there.
class AttemptBook {
 public:
  AttemptBook(JournalWriter& journal, std::vector<TaskKey> keys) : journal_(journal), keys_(std::move(keys)) {}

  void add_key(TaskKey key) { keys_.push_back(key); }  // of the next task
  void prepare(BookedAttempt attempt);
  [[nodiscard]] BookedAttempt* find(AttemptId id);
  [[nodiscard]] BookedAttempt* under_way(AttemptId id);  // null once it has ended
  [[nodiscard]] std::vector<BookedAttempt*> all(Stage stage);
  [[nodiscard]] std::vector<const BookedAttempt*> all(Stage stage) const;
  [[nodiscard]] std::size_t count(Stage stage) const { return all(stage).size(); }

  void identified(AttemptId id, std::int64_t pid, std::optional<Nanos> process_start);
  // Its last line in the journal; it is not in the book any more.
  [[nodiscard]] std::optional<BookedAttempt> close(AttemptId id, AttemptOutcome outcome);
  void end_task(TaskIndex task, TaskState state, const std::string& reason, const std::string& fingerprint);

 private:
  JournalWriter& journal_;
  std::vector<TaskKey> keys_;
  std::map<AttemptId, BookedAttempt> attempts_;
};

}  // namespace headroom::batch
