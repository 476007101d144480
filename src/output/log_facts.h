// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/batch.h"
#include "output/log_pattern.h"

// What a task says of itself: parameters as it resolved them, and metrics. Pure; the last word on a name counts.
namespace headroom::output {

class LogFacts {
 public:
  // Patterns for steps and phases are left out. Their syntax was checked when they were read.
  explicit LogFacts(const std::vector<LogPattern>& patterns);

  // Lines of a log: what the patterns find, parameters that trainers print (line_kinds.h), unless a pattern is of that
  // name, and lines that are JSON of this form, whatever else is printed:
  //   {"headroom": {"params": {"lr": 0.1, "model": {"depth": 6}}, "metrics": {"auc": 0.93}}}
  // Nested names are joined by dots; what is no number is no metric.
  void take_log(std::string_view text, Attempt& attempt) const;
  // A file in which the task leaves its parameters: one JSON object. False where it is none.
  static bool take_file(std::string_view text, Attempt& attempt);

 private:
  struct Compiled {
    LogPattern pattern;
    Matcher matcher;
  };
  void take_line(std::string_view line, Attempt& attempt) const;
  void take_told(std::string_view line, Attempt& attempt) const;
  std::vector<Compiled> patterns_;
};

// In what Headroom says beside a job that goes on without it.
inline constexpr std::string_view kJobRunsOn = "the job runs on";

// For one line beside an exit code: what went wrong, by the end of what a program printed. The exception where that
// ends with a Python traceback, else the last line; printable, and at most 160 bytes. "" where it printed nothing. A
// note of Headroom that the job runs on is no reason.
[[nodiscard]] std::string last_words(std::string_view output);
// The exception alone, likewise, where what a program printed ends with a Python traceback and a few lines at most
// behind it; else "". With that which another thread had ended with before, as what follows may be of that.
[[nodiscard]] std::string exception_at_end(std::string_view output);

}  // namespace headroom::output
