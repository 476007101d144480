// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "model/explanation.h"

namespace headroom::report {

// "headroom.why/1" (docs/json.md): fields are added, never renamed or removed, within a schema version.
[[nodiscard]] std::string to_json(const Explanation& explanation);

// "headroom.thresholds/1": the table of model/thresholds.h.
[[nodiscard]] std::string thresholds_json();

}  // namespace headroom::report
