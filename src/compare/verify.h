// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compare/compare.h"
#include "model/plan.h"
#include "model/prediction.h"

namespace headroom::compare {

// The JSON of `headroom plan` (headroom.plan/1), as far as verification needs it: of the recording its path, of an
// option its id, title, safety, cause, gain and sizes. Causes and classes of a newer version are none.
// kInvalidInput: it is no plan, an option has no id, or a gain is no interval; kUnsupported: of a newer version.
[[nodiscard]] Result<Plan> read_plan(std::string_view json);

// Did a change deliver what a plan predicted? Pure.

// The options that a person applied, held against the plan: known ones, each once. Of a plan with one option that one,
// if nothing is said. kInvalidInput, with the ids to choose from.
[[nodiscard]] Result<std::vector<std::string>> applied_options(const Plan& plan, const std::vector<std::string>& said);

// `before` is the plan's recording. One run of each is compared as a whole where both did equal work, since the plan's
// gains are of the whole, and else by its steps; repeats as repeats. Tenants and lowered clocks of `before` alone are
// no objection where the options were to end them. After options that change what a step holds, samples are compared:
// as the programs count them, or steps times the sizes that they or the plan say; else nothing is.
[[nodiscard]] Verification verify(const Plan& plan, const std::vector<std::string>& applied, Side before, Side after,
                                  CompareRequest request = {});

// Kept: the measured gain is at least the predicted low end. Not kept: its whole interval is below. Else not known. A
// risky change keeps nothing if a quality that the programs print is worse.
void judge(const std::vector<QualityVerdict>& quality, bool risky, VerifiedOption& option);

// A quality counts as worse by more than two standard deviations of its repeats, or by more than 1 % where there is one
// run of each.
[[nodiscard]] QualityVerdict quality_of(const ComparedMetric& metric);

}  // namespace headroom::compare
