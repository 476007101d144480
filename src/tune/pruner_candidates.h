// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "model/study.h"
#include "model/study_report.h"

namespace headroom::tune {

// What a study's storage says of its pruner without any replay. Steps are from 0 to 2^40.
struct PruningTraces {
  std::int64_t pruned = 0;                     // PRUNED trials with reports
  bool from_zero = false;                      // steps are counted from 0
  bool rungs = false;                          // successive halving left its values
  std::optional<std::int64_t> fewest_reports;  // of a PRUNED trial
  std::optional<std::int64_t> earliest_step;   // at which one ended
  std::int64_t stride = 0;                     // largest number of which all steps of prunes are multiples, from there
  std::optional<std::int64_t> earliest_rung;   // step whose value stands at a rung 0
  std::optional<std::int64_t> longest;         // last step of COMPLETE trials
  std::optional<std::int64_t> largest_patience;  // with which 97 % of prunes came after that much stagnation
  std::int64_t completed_before = 0;             // COMPLETE trials that ended before the first prune
};

[[nodiscard]] PruningTraces pruning_traces(const Study& study);

// Settings that may have left these traces, likelier ones first: a few hundred at most. One objective.
[[nodiscard]] std::vector<PrunerSettings> pruner_candidates(const Study& study, const PruningTraces& traces);

}  // namespace headroom::tune
