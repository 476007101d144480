// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

#include "model/study.h"

namespace headroom::tune {

// Indices of trials with the same parameters as one of a lower number. Enqueued ones, retries and those that wait are
// no repeats of others; others can repeat theirs. By 64-bit hashes of the parameters.
[[nodiscard]] std::vector<std::size_t> repeated_trials(const Study& study);

}  // namespace headroom::tune
