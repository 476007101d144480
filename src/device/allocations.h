// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace headroom {

// For tests: how often this program has called operator new (allocations_test.cc replaces it).
[[nodiscard]] std::int64_t allocations();

}  // namespace headroom
