// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <string_view>

// Progress out of a task's log ([log] step). Pure.
namespace headroom::run {

inline constexpr std::size_t kLongestLogLine = 4096;  // beyond it no regular expression is tried

// The pattern's group is the number of the step that was reached. A number that goes back begins a new count (the next
// epoch), which is added to what was done before; where the group is no number, each match is one step.
class StepCounter {
 public:
  explicit StepCounter(std::shared_ptr<const std::regex> pattern) : pattern_(std::move(pattern)) {}
  void take(std::string_view text);  // whole lines
  [[nodiscard]] std::optional<double> done() const { return seen_ ? std::optional(before_ + now_) : std::nullopt; }

 private:
  void take_line(std::string_view line);
  std::shared_ptr<const std::regex> pattern_;
  double before_ = 0, now_ = 0;
  bool seen_ = false;
};

}  // namespace headroom::run
