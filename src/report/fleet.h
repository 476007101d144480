// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "model/fleet.h"
#include "report/layout.h"

namespace headroom::report {

// The answer of `headroom fleet`: a row for each group and their sum, where all of the time went, what is not counted
// and why, the next step. With options.full every account, every cause and every file.
[[nodiscard]] std::string to_text(const Fleet& fleet, const TextOptions& options);
// "headroom.fleet/1" (docs/json.md).
[[nodiscard]] std::string to_json(const Fleet& fleet);

}  // namespace headroom::report
