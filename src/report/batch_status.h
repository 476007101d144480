// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/batch_progress.h"

// How far a batch is: while it runs, by its progress; afterwards, by what its journal says of each task.
namespace headroom::report {

// "171/252", "68 %", "0:31", "2 failed", "about 15 s left (12 s to 19 s)"
struct ProgressPart {
  std::string text;
  bool problem = false;
};
[[nodiscard]] std::vector<ProgressPart> progress_parts(const BatchProgress& progress);
[[nodiscard]] std::string progress_words(const BatchProgress& progress);  // in one line
// "GPU 0", "RTX A6000", "5 running", "8.1/48 GiB", …: what is less important comes later.
[[nodiscard]] std::vector<std::string> gpu_parts(const BatchProgress::Gpu& gpu);
// "GPU 0  RTX A6000  5 running  8.1/48 GiB  gpu 92 %  2.8 tasks/s  (1 alone: 0.7)"; on a narrow terminal the last
// parts are left out.
[[nodiscard]] std::string gpu_words(const BatchProgress::Gpu& gpu, std::size_t width = 80);

// "headroom.batch-status/1": what a running batch answers …
[[nodiscard]] std::string to_json(const BatchProgress& progress);
// … the same for people, and as JSON again, in ASCII; "" where `answer` is no such thing: whoever listens wrote it.
[[nodiscard]] std::string status_text(std::string_view answer);
[[nodiscard]] std::string status_json(std::string_view answer);

// What came of the last attempt of a task that has not ended.
enum class LastAttempt : std::uint8_t { kNone, kInterrupted, kOther };
[[nodiscard]] std::string_view state_words(TaskState state, LastAttempt last);

struct TaskAndState {
  std::string name;
  TaskState state = TaskState::kReady;
  std::string reason;
  LastAttempt last = LastAttempt::kNone;
};
// By the journal. `command` is that of the last run; "" where it does nothing. `last_run` is how the last run ended, ""
// if it was killed, or goes on and gives no answer: then `no_answer` says why.
struct StatusAtRest {
  std::string folder, last_run, command;  // the command goes on with it
  std::string no_answer;                  // "": it does not run now
  bool ran = false;                       // there was a last run
  std::vector<std::string> workers;       // of several that share the work: each in words
  std::int64_t added = 0;                 // tasks left that were added to it while it ran: `command` does not name them
  std::vector<TaskAndState> tasks;
};
[[nodiscard]] std::string to_json(const StatusAtRest& status);
[[nodiscard]] std::string to_text(const StatusAtRest& status);
// "n1.j4711: 2 claimed, heard of 12 s ago"; `heard` absent: it left, or died long ago.
[[nodiscard]] std::string worker_words(std::string_view name, std::size_t pieces, std::optional<Nanos> heard);
// All tasks, a line each, and how many are in which state.
[[nodiscard]] std::string task_list(const std::vector<TaskAndState>& tasks);

}  // namespace headroom::report
