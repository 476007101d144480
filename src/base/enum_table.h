// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

namespace headroom {

// Whether row i of a table is that of the enumerator with value i, so that a value finds its row by its number. To be
// asserted beside each such table.
[[nodiscard]] constexpr bool in_order_of_ids(const auto& table) {
  std::size_t row = 0;
  for (const auto& entry : table)
    if (static_cast<std::size_t>(entry.id) != row++) return false;
  return true;
}

}  // namespace headroom
