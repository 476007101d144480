// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "output/line_cutter.h"
#include "output/line_marks.h"

namespace headroom::output {

using Words = std::vector<std::string>;

// What a job's output says: phases in order, steps in all, the last value of each metric.
class Said {
 public:
  explicit Said(const std::vector<LogPattern>& patterns = {}, LineMarks::Seen seen = LineMarks::Seen::kFromTheBegin)
      : marks_(patterns, seen) {}

  Said& print(std::string_view output) {
    cutter_.take(output, at_ += between, [this](std::string_view line, Nanos at) { take(line, at); });
    return *this;
  }
  void take(std::string_view line, Nanos at) {
    for (const Mark& mark : marks_.take(line, at)) {
      if (mark.kind == Mark::Kind::kProgress)
        progress.push_back(
            fmt::format("{} {}/{} {}{}", mark.name, mark.count, mark.of, mark.state, mark.in_epoch ? " in epoch" : ""));
      if (mark.kind == Mark::Kind::kPhase) phases.emplace_back(mark.name), nths.push_back(mark.nth);
      if (mark.kind == Mark::Kind::kStep) steps += mark.count, samples += mark.value;
      if (mark.kind == Mark::Kind::kMetric) metrics[std::string(mark.name)] = mark.value;
      if (mark.kind == Mark::Kind::kParameter) parameters[std::string(mark.name)] = mark.text;
    }
  }

  Nanos between = kSecond / 10;  // two prints
  Words phases, progress;
  std::vector<std::int64_t> nths;  // of these
  std::int64_t steps = 0;
  double samples = 0;
  std::map<std::string, double> metrics;
  std::map<std::string, std::string> parameters;

 private:
  LineMarks marks_;
  LineCutter cutter_;
  Nanos at_ = 0;
};

}  // namespace headroom::output
