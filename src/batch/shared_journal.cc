// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "batch/journal.h"
#include "batch/shared_work.h"

namespace headroom::batch {

namespace {

// Of what two workers know of a task: what succeeded, then what is under way, then what ended, then what was begun.
auto rank_of(const KnownTask& task) {
  return std::tuple(task.state == TaskState::kSucceeded, task.under_way, has_ended(task.state), task.attempts > 0);
}

class Merger {
 public:
  explicit Merger(const std::vector<SharedTask>& tasks) {
    for (const SharedTask& task : tasks) {
      KnownTask known;
      known.name = task.name, known.group = task.group;
      (void)place_of(known);
    }
  }

  void add(Contents worker) {
    if (merged_.batch_id.empty()) merged_.batch_id = worker.batch_id, merged_.name = worker.name;
    std::vector<TaskIndex> places;
    for (const KnownTask& task : worker.tasks) places.push_back(place_of(task));
    for (Attempt& attempt : worker.attempts) {
      attempt.task = places[attempt.task];
      merged_.attempts.push_back(std::move(attempt));
    }
    std::move(worker.runs.begin(), worker.runs.end(), std::back_inserter(merged_.runs));
  }

  Contents take() {
    std::stable_sort(merged_.attempts.begin(), merged_.attempts.end(),
                     [](const Attempt& a, const Attempt& b) { return a.start < b.start; });
    std::vector<int> numbers(merged_.tasks.size());
    for (std::size_t i = 0; i < merged_.attempts.size(); ++i) {
      Attempt& attempt = merged_.attempts[i];
      attempt.id = i + 1;
      attempt.number = ++numbers[attempt.task];
    }
    for (std::size_t i = 0; i < merged_.tasks.size(); ++i) {
      merged_.tasks[i].key = static_cast<TaskKey>(i + 1);
      merged_.tasks[i].attempts = numbers[i];
      merged_.tasks[i].added = merged_.tasks[i].superseded = false;  // every worker is given its tasks bit by bit
    }
    std::stable_sort(merged_.runs.begin(), merged_.runs.end(),
                     [](const Run& a, const Run& b) { return a.start < b.start; });
    for (std::size_t i = 0; i < merged_.runs.size(); ++i) merged_.runs[i].number = static_cast<std::int64_t>(i + 1);
    const std::int64_t last = merged_.runs.empty() ? 0 : merged_.runs.back().number;
    for (KnownTask& task : merged_.tasks) task.run = last;
    return std::move(merged_);
  }

 private:
  TaskIndex place_of(const KnownTask& task) {
    const auto [known, is_new] = places_.emplace(task.name, static_cast<TaskIndex>(merged_.tasks.size()));
    if (is_new)
      merged_.tasks.push_back(task);
    else if (rank_of(task) > rank_of(merged_.tasks[known->second]))
      merged_.tasks[known->second] = task;
    return known->second;
  }

  Contents merged_;
  std::unordered_map<std::string, TaskIndex> places_;
};

// Every task once, with the attempts of all workers. Attempts are numbered anew, in order of their starts; a task that
// succeeded anywhere has succeeded, and one that nobody has claimed is ready.
Result<Contents> read_shared_journal(const std::string& folder) {
  HR_TRY(const std::vector<SharedTask> tasks, shared_tasks(folder));
  Merger merger(tasks);
  for (const std::string& worker : workers_of(folder)) {
    HR_TRY(Contents contents, read_own_journal(folder_of_worker(folder, worker)));
    merger.add(std::move(contents));
  }
  return merger.take();
}

}  // namespace

Result<Contents> read_journal(const std::string& folder) {
  return is_shared(folder) ? read_shared_journal(folder) : read_own_journal(folder);
}

}  // namespace headroom::batch
