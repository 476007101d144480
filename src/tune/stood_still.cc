// SPDX-License-Identifier: Apache-2.0
#include "tune/stood_still.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "tune/study_clock.h"

namespace headroom::tune {

namespace {

std::string lasted(double seconds) { return human_duration(to_nanos(seconds)); }

}  // namespace

std::optional<StoodStill> stood_still(const Timeline& timeline) {
  const std::vector<Standstill>& all = timeline.stood_still;
  if (all.empty()) return std::nullopt;
  const auto length = [](const Standstill& one) { return one.end - one.begin; };
  const Standstill& longest = *std::ranges::max_element(all, {}, length);
  StoodStill found;
  for (const Standstill& one : all) found.seconds += length(one);
  const std::string what = longest.open == 0   ? "no trial was open"
                           : longest.open == 1 ? "no trial began or ended, and 1 was open"
                                               : fmt::format("no trial began or ended, and {} were open", longest.open);
  const std::string more =
      all.size() > 1 ? fmt::format("; {} such stretches, {} in all", all.size(), lasted(found.seconds)) : "";
  found.anomaly = {
      .kind = "stood_still",
      .text = fmt::format("for {} from {} on by the storage's clock {}{}", lasted(length(longest)),
                          clock_time(timeline.begin + to_nanos(longest.begin)), what, more),
      .next = longest.open == 0
                  ? "the study was stopped then, or its workers had ended: it is nobody's time, and in no account"
              : longest.end >= seconds(timeline.end - timeline.begin)
                  ? "the study is over, the machine slept, or all workers waited for something"
                  : "the machine slept, or all workers waited for something"};
  return found;
}

}  // namespace headroom::tune
