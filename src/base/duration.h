// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace headroom {

// "1s", "100ms", "2.5m", "70h", "1d"; "0". kInvalidInput for anything else: a number without a unit, a negative one.
[[nodiscard]] Result<Nanos> parse_duration(std::string_view text);

}  // namespace headroom
