// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

#include "model/study.h"

namespace headroom::tune {

struct RepeatedTrial {
  std::size_t trial = 0;       // its index
  bool after_failures = true;  // all before it with these parameters failed: no value is known
};
// Trials with the same parameters as one of a lower number. Enqueued ones, retries and those that wait are no repeats
// of others; others can repeat theirs. By 64-bit hashes of the parameters.
[[nodiscard]] std::vector<RepeatedTrial> repeated_trials(const Study& study);

}  // namespace headroom::tune
