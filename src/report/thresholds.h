// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace headroom::report {

// The table of model/thresholds.h as headroom.thresholds/1.
[[nodiscard]] std::string thresholds_to_json();

}  // namespace headroom::report
