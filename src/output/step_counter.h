// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "output/log_pattern.h"

// Progress out of a task's log ([log] step). Pure.
namespace headroom::output {

// The pattern's group is the number of the step that was reached. A number that goes back begins a new count (the next
// epoch), which is added to what was done before; where the group is no number, each match is one step.
class StepCounter {
 public:
  explicit StepCounter(Matcher pattern) : pattern_(std::move(pattern)) {}
  void take(std::string_view text);  // whole lines
  [[nodiscard]] std::optional<double> done() const { return seen_ ? std::optional(before_ + now_) : std::nullopt; }

 private:
  void take_line(std::string_view line);
  Matcher pattern_;
  double before_ = 0, now_ = 0;
  bool seen_ = false;
};

}  // namespace headroom::output
