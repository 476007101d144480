// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "model/prediction.h"

// Predictions that were verified, and what they teach about the next ones. Pure.
namespace headroom::compare {

// One line of JSON, with its end; and all lines of a file, the later one of those with one key. A damaged line is left
// out and counted.
[[nodiscard]] std::string outcome_line(const PredictionOutcome& outcome);
struct Outcomes {
  std::vector<PredictionOutcome> list;  // oldest first
  std::int64_t damaged = 0;
  std::int64_t uncounted = 0;  // left out, since they do not say what the work was counted in: an older version's
};
[[nodiscard]] Outcomes outcomes_of(std::string_view text);

// Per cause, those with outcomes, in order of the causes' table; those of studies are of none.
//
// Of each outcome the share of the time that the prediction let go is taken: (1 - 1/measured) / (1 - 1/predicted high),
// between -1 and 2. Before any outcome, shares are taken to lie between 0.5 and 1 (four in five), as if four had been
// seen; outcomes move and narrow or widen that by the conjugate normal model (Gelman et al., Bayesian Data Analysis,
// section 3.3, with the predictive spread). For the low end more than all counts as all: a prediction that was exceeded
// was kept, and makes the next one no less sure. Predictions below 1.005 promise nothing and teach nothing.
[[nodiscard]] std::vector<CauseHistory> cause_histories(const std::vector<PredictionOutcome>& outcomes);

}  // namespace headroom::compare
