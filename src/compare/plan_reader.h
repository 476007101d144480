// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/finding.h"

// The JSON of `headroom plan` (headroom.plan/1), as far as verification needs it. What is not needed is not looked at.
namespace headroom::compare {

struct PlannedOption {
  std::string id, title, safety;
  std::optional<Cause> cause;                      // absent for a set, and for causes of a newer version
  std::optional<std::pair<double, double>> gain;   // factors of time at equal work; absent: it promises none
  std::optional<std::pair<double, double>> batch;  // sizes, from and to, where it changes them and says so
};
struct PlannedTogether {
  std::vector<std::string> ids;
  double low = 1, high = 1;
};
struct PlanFile {
  std::string recording;  // path; "": the plan does not say
  std::vector<PlannedOption> options;
  std::vector<PlannedTogether> after;
};

// kInvalidInput: it is no plan, an option has no id, or a gain is no interval; kUnsupported: of a newer version.
[[nodiscard]] Result<PlanFile> read_plan(std::string_view json);

}  // namespace headroom::compare
