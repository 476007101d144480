// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/study_report.h"

// How the first trials of a study to end went: of a replay and of a real one by the same count.
namespace headroom::tune {

struct TrialTimes {
  double begin = 0, end = 0;  // seconds; end: until it was last known to be open
  bool ended = true, pruned = false;
  bool counts = true;  // false: it is only open beside those that do
  double memory = 0;   // bytes that it holds
};

struct FirstFigures {
  std::int64_t trials = 0;
  double trials_per_hour = 0;   // from the first begin to the end of the last of them
  std::vector<double> lengths;  // theirs, in seconds, as they ended
  std::int64_t pruned = 0;
  double at_once = 0;  // open meanwhile, on average
  double until = 0;    // the end of the last of them
};

// Of the first so many that ended, for each of `counts` that so many have; these are rising.
[[nodiscard]] std::vector<FirstFigures> first_trials(const std::vector<TrialTimes>& trials,
                                                     const std::vector<std::size_t>& counts);
// The most that were open together, and what they held together.
struct Together {
  std::int64_t trials = 0;
  double memory = 0;
};
[[nodiscard]] Together most_together(const std::vector<TrialTimes>& trials, double until);

// Numbers of first trials that a plan tells of, each up to two thirds more than the one before.
inline constexpr std::array<std::size_t, 19> kFirstTrials{10,   15,   25,   40,   60,   100,   150,   250,   400,  600,
                                                          1000, 1500, 2500, 4000, 6000, 10000, 15000, 25000, 40000};

// Trials from number `since` on that ended before the last one began: with what came after, workers ran dry.
[[nodiscard]] std::int64_t ended_since(const StudyReport& report, std::int64_t since);
// The first `count` to end of these trials, with the study's standstills left out. Ranges hold the truth 90 % of the
// time: of the rate by the standard error of the mean length (delta method on its logarithm, Student's t of ten
// trials), of the share of pruned ones by Wilson's score (JASA 22, 1927), of the median length by its ranks; of trials
// at once from their mean to the most. Absent: fewer have ended.
[[nodiscard]] std::optional<FirstTrials> measured_first(const Study& study, const StudyReport& report,
                                                        std::int64_t since, std::int64_t count);

}  // namespace headroom::tune
