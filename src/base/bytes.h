// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace headroom {

// "3GiB", "512M", "1.5TB", "100B": K, M, G, T and KiB … are powers of 1024 (as Slurm and Docker have them), KB … of
// 1000. kInvalidInput for anything else: a number without a unit, nothing, less than nothing, more than 2^62.
[[nodiscard]] Result<std::int64_t> parse_bytes(std::string_view text);

}  // namespace headroom
