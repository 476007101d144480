// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>

#include "model/explanation.h"

namespace headroom::report {

// The member "ledger" of headroom.why/1 and headroom.batch/1.
[[nodiscard]] nlohmann::ordered_json ledger_json(const Explanation& explanation);

}  // namespace headroom::report
