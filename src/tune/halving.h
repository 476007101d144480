// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "model/study_report.h"

namespace headroom::tune {

// The values that reached one rung. Values are compared as "smaller is better".
class Rung {
 public:
  // Adds a value; whether it is among the best floor(n / reduction_factor) of now n, or the best one.
  bool promotes(double value, std::int64_t reduction_factor);
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(best_.size() + rest_.size()); }

 private:
  std::priority_queue<double> best_;  // the worst of them on top
  std::priority_queue<double, std::vector<double>, std::greater<>> rest_;
};

// What successive halving knows of one trial.
struct RungValues {
  std::vector<double> values;  // by rung, from 0
  std::optional<int> bracket;  // under the settings of now
};

// Hyperband's brackets as shares of the trials: trial `number` is in the first one in which crc32 modulo `total` falls.
struct Brackets {
  std::vector<std::int64_t> budgets;
  std::int64_t total = 0;
  std::uint32_t name_crc = 0;  // of "{study_name}_"

  Brackets() = default;
  Brackets(std::int64_t min_resource, std::int64_t max_resource, std::int64_t reduction_factor,
           const std::string& study_name);
  [[nodiscard]] int of(std::int64_t trial) const;
};

// Asynchronous successive halving in as many brackets as Hyperband has, or in one. Trials are stopped and never
// resumed.
class Halving {
 public:
  Halving(const PrunerSettings& settings, Direction direction, const std::string& study_name);

  // What is "auto" is fixed at the first check that finds a completed trial with reports, and stays: `longest` is the
  // latest last step of these. `each_trial` calls its argument with the number and the RungValues of every trial.
  // False: nothing is pruned yet, or, where max_resource < min_resource, ever.
  template <class EachTrial>
  [[nodiscard]] bool ready(std::optional<std::int64_t> longest, const EachTrial& each_trial) {
    if (fixed_) return !tables_.empty();
    fix_resources(longest);
    if (!tables_.empty()) each_trial([this](std::int64_t n, RungValues& rungs) { enter(n, rungs); });
    return !tables_.empty();
  }

  // Whether the trial is pruned; values at rungs that it reached are recorded. Only once ready.
  [[nodiscard]] bool prunes(std::int64_t trial, RungValues& rungs, std::int64_t step, double value);

 private:
  void fix_resources(std::optional<std::int64_t> longest);
  void enter(std::int64_t trial, RungValues& rungs);
  [[nodiscard]] Rung& rung(int bracket, std::size_t number);
  [[nodiscard]] double smaller_is_better(double value) const {
    return direction_ == Direction::kMaximize ? -value : value;
  }

  PrunerSettings settings_;
  Direction direction_;
  std::string study_name_;
  bool fixed_ = false;
  std::int64_t min_resource_ = 1;
  Brackets brackets_;                      // Hyperband only
  std::vector<std::vector<Rung>> tables_;  // by bracket, by rung
};

}  // namespace headroom::tune
