// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/study_verification.h"

// Did a change of a study deliver what `headroom study -o plan.json` predicted? Pure.
namespace headroom::compare {

// Whether it is an answer of `headroom study`, of any version.
[[nodiscard]] bool is_study_plan(std::string_view json);

// The study of a plan (headroom.study/1) as far as verification needs it: name, storage, trials, begin, directions,
// parameters, best value, what-if. kInvalidInput: it has none or several of them, no what-if, or does not say all that
// is predicted; kUnsupported: of a newer version.
[[nodiscard]] Result<StudyReport> read_study_plan(std::string_view json);

// The change by its name or by its number in the plan. kInvalidInput, with those that there are.
[[nodiscard]] Result<WhatIf> applied_change(const StudyReport& plan, const std::vector<std::string>& said);

// Whether `now` is the plan's own study.
[[nodiscard]] bool is_plans_own(const StudyReport& plan, const StudyReport& now);

// What is predicted where so many trials have ended: of a new study the first ones, of one that goes on its whole.
// Absent: too few have.
inline constexpr std::int64_t kFewestVerified = 10;
[[nodiscard]] std::optional<FirstTrials> predicted_of(const StudyReport& plan, const WhatIf& change, std::int64_t ended,
                                                      std::int64_t since);

struct MeasuredStudy {
  const StudyReport& report;
  std::int64_t since = 0;              // its first trial that counts; above 0: it goes on
  std::int64_t ended = 0;              // from there on
  std::optional<FirstTrials> first;    // as many as predicted_of() is about
  std::optional<PrunerSettings> told;  // its pruner, where somebody told it
};

// Kept: the trials per hour reach the low end of what was predicted, nothing that the change moves is not kept, and one
// such figure at least is not what is predicted of as many trials of the study as it is: else too few tell. Not kept:
// the whole range of what was measured is outside. Time to best: as if all trials were alike draws, n of a study and k
// others fail to reach the best of the n with a chance of n/(n+k); above 5 % a late one says nothing.
[[nodiscard]] StudyVerification verify_study(const StudyReport& plan, const WhatIf& change,
                                             const MeasuredStudy& measured);

}  // namespace headroom::compare
