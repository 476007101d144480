// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

#include "model/study.h"

namespace headroom::tune {

struct RepeatedTrial {
  std::size_t trial = 0;       // its index
  std::size_t of = 0;          // of the first that has these parameters
  bool after_failures = true;  // all before it with these parameters failed: no value is known
};
// Trials with the same parameters as one of a lower number. Enqueued ones, retries and those that wait are no repeats
// of others; others can repeat theirs. By 64-bit hashes of the parameters.
[[nodiscard]] std::vector<RepeatedTrial> repeated_trials(const Study& study);

// Whether most of them come in the order of those that they repeat, one after the other, as a sampler draws again that
// was given the same seed: a study of few values repeats in no order.
[[nodiscard]] bool in_the_same_order(const std::vector<RepeatedTrial>& repeated);

}  // namespace headroom::tune
