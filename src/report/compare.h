// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "model/comparison.h"
#include "report/layout.h"

namespace headroom::report {

// The answer of `headroom compare`: whether the two may be compared, and if so by how much they differ.
[[nodiscard]] std::string to_text(const Comparison& comparison, const TextOptions& options);
// "headroom.compare/1" (docs/json.md).
[[nodiscard]] std::string to_json(const Comparison& comparison);

}  // namespace headroom::report
