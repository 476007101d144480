// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// What Python prints of tuples and lists, one a line, as rows of CSV: "('2025-01-09 20:15:00', 0, 88)" has no header,
// "Sample(ts=1741600000.1, gpu=0, util=88)" has its own. Nothing where most lines are something else.
[[nodiscard]] std::optional<std::string> csv_of_printed(std::string_view text);

}  // namespace headroom
