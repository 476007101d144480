// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "scheduler/planner.h"

// When a batch will be done, from what its tasks took in earlier batches and in this one, all counted as if each had
// its GPU to itself, and from how much slower they are now. Pure.
namespace headroom::scheduler {

class Eta {
 public:
  explicit Eta(std::span<const PlannedTask> tasks);  // all of the batch; ended ones count for nothing

  // `took`: what the attempt that succeeded would have taken alone; absent for a task that ended otherwise.
  void ended(TaskIndex task, std::optional<Nanos> took);

  struct Running {
    TaskIndex task = 0;
    Nanos done = 0;    // of its time alone
    double speed = 1;  // now, of alone
  };
  // Left is an expectation, low to high an interval of about four in five, if tasks go on as they have.
  struct Estimate {
    Nanos left = 0, low = 0, high = 0;
  };
  // Absent where nothing runs, or nothing is known of how long tasks take: no history, and none has ended.
  [[nodiscard]] std::optional<Estimate> estimate(std::span<const Running> running) const;

 private:
  struct Group {
    std::int64_t left = 0;  // that have no expectation of their own
    std::int64_t ended = 0;
    double seconds = 0;  // of those ended
  };
  struct Task {
    GroupIndex group = 0;
    double expected = -1;  // seconds alone; < 0: not known
    bool ended = false;
  };
  [[nodiscard]] std::optional<double> guess(const Task& task) const;  // its time alone, in seconds
  [[nodiscard]] double stretch() const;
  [[nodiscard]] std::optional<double> mean() const;  // of all that ended

  std::vector<Task> tasks_;
  std::vector<Group> groups_;
  double expected_left_ = 0;                    // seconds, of those with an expectation
  std::int64_t left_ = 0;                       // tasks
  double expected_ended_ = 0, took_ended_ = 0;  // of those with an expectation
  double longest_expected_ = 0;                 // of any task: weighs the first ratios
  double misses_ = 0;                           // squared relative errors of the guesses
  std::int64_t judged_ = 0;                     // guesses that met their truth
};

}  // namespace headroom::scheduler
