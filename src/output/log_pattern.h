// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace re2 {
class RE2;
}

namespace headroom::output {

// A pattern for the lines of a job's output: the one group of `regex` (RE2's syntax) is the value. Of a phase the
// line alone counts, and groups are as they may be.
struct LogPattern {
  enum class Kind { kMetric, kParameter, kStep, kPhase };
  Kind kind = Kind::kMetric;
  std::string name;  // "" for kStep
  std::string regex;
  bool operator==(const LogPattern&) const = default;
};
// kInvalidInput: no name, no regular expression, or, save for a phase, not exactly one group. "loss=loss: ([0-9.]+)" of
// --metric.
[[nodiscard]] Result<LogPattern> log_pattern(LogPattern::Kind kind, std::string_view name, std::string_view regex);
[[nodiscard]] Result<LogPattern> parse_log_option(LogPattern::Kind kind, std::string_view name_equals_regex);

// A compiled LogPattern. Matching takes time linear in the line, whatever the pattern (RE2 is an automaton): a task's
// output cannot hold up who reads it. Copies share the automaton, which any thread may use.
class Matcher {
 public:
  // Takes a pattern that log_pattern() let through; any other matches nothing.
  explicit Matcher(const LogPattern& pattern);
  // The group of the first match; nothing where the line has none.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view line) const;
  [[nodiscard]] bool matches(std::string_view line) const;  // whatever its groups

 private:
  std::shared_ptr<const re2::RE2> regex_;
};

// Progress out of a task's log ([log] step). Pure.

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
