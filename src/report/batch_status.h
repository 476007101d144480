// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "model/batch_progress.h"

// How far a batch is: while it runs, by its progress; afterwards, by what its journal says of each task.
namespace headroom::report {

// "171/252  68 %  0:31  about 15 s left (12-19)"
[[nodiscard]] std::string progress_words(const BatchProgress& progress);
// "GPU 0  RTX A6000  5 running  8.1/48 GiB  gpu 92 %  2.8 tasks/s  (1 alone: 0.7)"; on a narrow terminal the last
// parts are left out.
[[nodiscard]] std::string gpu_words(const BatchProgress::Gpu& gpu, std::size_t width = 80);

// "headroom.batch-status/1": what a running batch answers …
[[nodiscard]] std::string to_json(const BatchProgress& progress);
// … the same for people; "" where `answer` cannot be read.
[[nodiscard]] std::string status_text(std::string_view answer);

struct TaskAndState {
  std::string name;
  TaskState state = TaskState::kReady;  // not ended: it has not run yet, or not to its end
  std::string reason;
};
// A batch that does not run now. `last_run` is how the last run ended, "" if it was killed.
struct StatusAtRest {
  std::string folder, last_run, command;  // the command goes on with it
  bool ran = false;                       // there was a last run
  std::vector<TaskAndState> tasks;
};
[[nodiscard]] std::string to_json(const StatusAtRest& status);
[[nodiscard]] std::string to_text(const StatusAtRest& status);
// All tasks, a line each, and how many are in which state.
[[nodiscard]] std::string task_list(const std::vector<TaskAndState>& tasks);

}  // namespace headroom::report
