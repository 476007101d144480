// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "analyze/analysis.h"

namespace headroom::diagnose {

// The answer in one or two plain sentences: what the GPUs did, and the largest loss; of a job that failed that first,
// with where it was by its own last words.
[[nodiscard]] std::string headline(const Analysis& a, const std::vector<Finding>& findings,
                                   const std::optional<Progress>& progress);

}  // namespace headroom::diagnose
