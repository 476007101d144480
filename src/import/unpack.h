// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace headroom {

[[nodiscard]] bool is_packed(std::string_view bytes);  // by gzip or zstd, told by its first bytes

// What gzip or zstd packed, all members of it. Of a file that was cut, what comes before the cut; kInvalidInput where
// nothing does, where it is damaged, or where it would be more than `most` bytes.
[[nodiscard]] Result<std::string> unpack(std::string_view bytes, std::size_t most = std::size_t{1} << 30);

}  // namespace headroom
