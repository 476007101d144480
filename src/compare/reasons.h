// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "compare/compare.h"
#include "compare/matching.h"
#include "compare/parameters.h"

// Everything that speaks against comparing two sides, each with its figures.
namespace headroom::compare {

// So many values at least, or chance alone may be the difference.
inline constexpr std::size_t kFewestRuns = 3, kFewestStretches = 8;
inline constexpr double kFewestSteps = 30;

struct Facts {
  const Side& a;
  const Side& b;
  const Matching& matching;
  const std::vector<ComparedParameter>& parameters;
  Unit unit = Unit::kNone;
  bool by_steps = false;             // by what happened within one run of each, not by runs
  bool whole = false;                // of the time of the whole run
  bool together = false;             // of all tasks from the first start to the last end: how many at once is compared
  bool steps_would_do = false;       // where single runs count them: nobody asked for whole runs of tasks
  const std::vector<Rate>& a_rates;  // in the unit
  const std::vector<Rate>& b_rates;
  const std::vector<CompareReason>& mended;  // of the request
};
[[nodiscard]] std::vector<ComparedReason> reasons_of(const Facts& facts);  // those that refuse first

}  // namespace headroom::compare
