// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "diagnose/rules.h"

namespace headroom::diagnose {

// The answer in one or two plain sentences: what the GPUs did, and the largest loss.
[[nodiscard]] std::string headline(const Case& c);

}  // namespace headroom::diagnose
