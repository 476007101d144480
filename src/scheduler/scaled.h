// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace headroom::scheduler {

[[nodiscard]] inline std::int64_t scaled(std::int64_t bytes, double factor) {
  return static_cast<std::int64_t>(static_cast<double>(bytes) * factor);
}

}  // namespace headroom::scheduler
