// SPDX-License-Identifier: Apache-2.0
#include "scheduler/eta.h"

#include <algorithm>
#include <cmath>

namespace headroom::scheduler {

namespace {
constexpr double kAssumedSpread = 0.4;  // of one task, relative, before any guess has met its truth
constexpr double kDrift = 0.05;         // the machine may become faster or slower: no range is narrower
constexpr double kFourInFive = 1.2816;  // standard deviations
constexpr double kLongest = 9e9;        // seconds: about the most that Nanos can say
constexpr double kNeverDone = 0.9;      // is the most of itself that a running task is credited with
constexpr double kSlowest = 0.01;
}  // namespace

Eta::Eta(std::span<const PlannedTask> tasks) {
  tasks_.reserve(tasks.size());
  for (const PlannedTask& given : tasks) {
    Task task{.group = given.group, .ended = has_ended(given.state)};
    if (given.expected) task.expected = seconds(*given.expected);
    const auto group = static_cast<std::size_t>(given.group);
    if (group >= groups_.size()) groups_.resize(group + 1);
    if (!task.ended) {
      ++left_;
      if (task.expected >= 0)
        expected_left_ += task.expected, longest_expected_ = std::max(longest_expected_, task.expected);
      else
        ++groups_[group].left;
    }
    tasks_.push_back(task);
  }
}

void Eta::ended(TaskIndex index, std::optional<Nanos> took) {
  if (index >= tasks_.size() || tasks_[index].ended) return;
  Task& task = tasks_[index];
  const auto guessed = guess(task);
  task.ended = true;
  --left_;
  Group& group = groups_[static_cast<std::size_t>(task.group)];
  if (task.expected >= 0)
    expected_left_ -= task.expected;
  else
    --group.left;
  if (!took) return;
  const double truth = seconds(*took);
  if (guessed && *guessed > 0) {
    const double miss = (truth - *guessed) / *guessed;
    misses_ += std::min(miss * miss, 1.0);
    ++judged_;
  }
  ++group.ended;
  group.seconds += truth;
  if (task.expected >= 0) expected_ended_ += task.expected, took_ended_ += truth;
}

// Today tasks may take longer than in earlier batches; the longest task's weight keeps the first ratios from ruling.
double Eta::stretch() const {
  const double weight = longest_expected_;
  return expected_ended_ + weight > 0 ? (took_ended_ + weight) / (expected_ended_ + weight) : 1;
}

std::optional<double> Eta::mean() const {
  double sum = 0;
  std::int64_t count = 0;
  for (const Group& group : groups_) sum += group.seconds, count += group.ended;
  if (count > 0) return sum / static_cast<double>(count);
  return std::nullopt;
}

std::optional<double> Eta::guess(const Task& task) const {
  if (task.expected >= 0) return task.expected * stretch();
  const Group& group = groups_[static_cast<std::size_t>(task.group)];
  if (group.ended > 0) return group.seconds / static_cast<double>(group.ended);
  return mean();
}

std::optional<Eta::Estimate> Eta::estimate(std::span<const Running> running) const {
  if (running.empty() || left_ <= 0) return std::nullopt;
  double total = expected_left_ * stretch();
  const auto other = mean();
  for (const Group& group : groups_) {
    if (group.left == 0) continue;
    if (group.ended == 0 && !other) return std::nullopt;
    total +=
        static_cast<double>(group.left) * (group.ended > 0 ? group.seconds / static_cast<double>(group.ended) : *other);
  }
  double longest = 0;  // of what runs: nothing ends before it does
  double rate = 0;
  for (const Running& one : running) {
    if (one.task >= tasks_.size()) continue;
    const double whole = guess(tasks_[one.task]).value_or(0), done = seconds(one.done);
    const double remaining = std::max(whole - done, done * (1 - kNeverDone) / kNeverDone);  // it may be a longer one
    const double speed = std::max(kSlowest, one.speed);
    total += remaining - whole;
    rate += speed;
    longest = std::max(longest, remaining / speed);
  }
  const double left = std::max(rate > 0 ? total / rate : 0, longest);
  const double judged = static_cast<double>(judged_);
  const double variance = (misses_ + kAssumedSpread * kAssumedSpread) / (judged + 1);
  const double error = std::sqrt(variance / (judged + 1) + variance / static_cast<double>(left_) + kDrift * kDrift);
  const double factor = 1 + kFourInFive * error;
  const auto nanos = [](double value) { return static_cast<Nanos>(std::clamp(value, 0.0, kLongest) * 1e9); };
  return Estimate{.left = nanos(left), .low = nanos(left / factor), .high = nanos(left * factor)};
}

}  // namespace headroom::scheduler
