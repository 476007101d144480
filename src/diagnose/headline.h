// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "analyze/analysis.h"

namespace headroom::diagnose {

// The answer in one or two plain sentences: what the GPUs did, and the largest loss.
[[nodiscard]] std::string headline(const Analysis& a, const std::vector<Finding>& findings);

}  // namespace headroom::diagnose
