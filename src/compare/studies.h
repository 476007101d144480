// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/study_verification.h"

// Two studies, or one before and after a change. Pure.
namespace headroom::compare {

// What makes their trials different work, a sentence each: directions, parameters and their ranges.
[[nodiscard]] std::vector<std::string> study_differences(const StudyReport& a, const StudyReport& b,
                                                         std::string_view a_name, std::string_view b_name);

// Trials that ended, and those of them that failed.
struct FailedTrials {
  std::int64_t failed = 0, ended = 0;
};
[[nodiscard]] FailedTrials failed_trials(const StudyReport& report);
// Where far more failed of one than of the other, by more than chance: that, and what it spoils; else nothing.
[[nodiscard]] std::optional<std::string> failures_differ(const FailedTrials& a, const FailedTrials& b,
                                                         std::string_view a_name, std::string_view b_name);

// Seconds until a study had a value as good as `value`, without its pauses; absent: it has none, or several objectives.
[[nodiscard]] std::optional<double> seconds_to(const StudyReport& report, double value);

// `a_ended`, `b_ended`: how the trials that ended before the last one began went (tune/first_trials.h).
[[nodiscard]] StudyComparison compare_studies(const StudyReport& a, const std::optional<FirstTrials>& a_ended,
                                              const StudyReport& b, const std::optional<FirstTrials>& b_ended);

}  // namespace headroom::compare
