// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::screen {

// What stands in one place of a terminal's grid: a character with the marks that combine with it.
struct Letter {
  std::string text;
  std::size_t columns = 1;  // 2: East Asian wide, and pictures
};

// Of text from outside: what would act on the terminal is written as an escape first (base/visible.h). Where `utf8` is
// false, what is not ASCII becomes "?".
[[nodiscard]] std::vector<Letter> letters_of(std::string_view text, bool utf8);

// Columns of a character: 0 of one that combines with the one before, 1, or 2 (Unicode's East Asian Width W and F, by
// blocks).
[[nodiscard]] std::size_t columns_of(char32_t code);

}  // namespace headroom::screen
