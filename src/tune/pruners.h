// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "model/study_report.h"

namespace headroom::tune {

// Optuna's pruners, decision by decision, over a study that grows. Told of every begin, report and end in the order in
// which they happen; a report is answered as Trial.should_prune() right after Trial.report() answers. Reports of a
// trial come with rising steps. What is "auto" is fixed once, as by one pruner object; workers that are processes of
// their own may each fix it at another moment. Source: Optuna's documentation and behaviour (3.1 to 5.0 agree); the
// tests hold each decision against Optuna's own.
class Pruning {
 public:
  // `settings` as parse_pruner() gives them. `study_name`: Hyperband derives a trial's bracket from it and the trial's
  // number.
  Pruning(const PrunerSettings& settings, Direction direction, std::string study_name);
  Pruning(Pruning&&) noexcept;
  Pruning& operator=(Pruning&&) noexcept;
  ~Pruning();

  void begin(std::int64_t trial);
  [[nodiscard]] bool report(std::int64_t trial, std::int64_t step, double value);
  void end(std::int64_t trial, TrialState state);

  // What successive halving recorded of the trial, by rung: Optuna's "completed_rung_0" and on.
  [[nodiscard]] std::span<const double> rungs(std::int64_t trial) const;

  // Other settings from now on, as when the code is changed in mid-study: what was recorded at rungs stays.
  void change(const PrunerSettings& settings);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Hyperband's bracket of a trial, from 0. Where max_resource is "auto" it is `longest`: one more than the last step of
// the trials that completed first, 0 while none did. Absent then, and where max_resource < min_resource: nothing is
// pruned.
[[nodiscard]] std::optional<int> hyperband_bracket(const PrunerSettings& settings, const std::string& study_name,
                                                   std::int64_t trial, std::int64_t longest);

}  // namespace headroom::tune
