// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <nlohmann/json.hpp>

#include "model/explanation.h"

namespace headroom::report {

// An element of the member "findings" of headroom.why/1.
[[nodiscard]] nlohmann::ordered_json finding_json(const Explanation& explanation, std::size_t index);

}  // namespace headroom::report
