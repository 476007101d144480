// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// A table whose cells stand between blanks, as `column -t` and pandas print it, as CSV: its header names a reading of a
// GPU, a date and its time of day are one cell, a unit belongs to the number before it, and the number of the row that
// pandas puts in front is left away. Nothing for all other texts, nor where rows were left out ("..").
[[nodiscard]] std::optional<std::string> csv_of_blanks(std::string_view text);

// The cells of a line between blanks that is a row without a header: a time and numbers; empty where it is none.
[[nodiscard]] std::vector<std::string> row_of_blanks(std::string_view line);

// Such rows, of so many cells as somebody has names for, as CSV; nothing for all other texts.
[[nodiscard]] std::optional<std::string> rows_of_blanks(std::string_view text, std::size_t cells);

}  // namespace headroom
