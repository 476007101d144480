// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

// Text from outside, as a terminal can be given it: what would move the cursor, change colours, reorder letters or
// speak to the terminal is written as an escape ("\x1b", "\u202e"), and so is what is no UTF-8.
namespace headroom {

[[nodiscard]] std::string visible(std::string_view text);        // one line: line ends and tabs are escaped, too
[[nodiscard]] std::string visible_lines(std::string_view text);  // line ends and tabs stay
// The same of a JSON document, which it stays, of the same value: what could speak to a terminal is "\u202e" there,
// too. `json` is valid UTF-8.
[[nodiscard]] std::string visible_json(std::string_view json);
// Words of a command that a person is to paste: quoted, and what a terminal would obey as bash, zsh and ksh read it
// back ($'\033', $'two\nlines'). Not for `sh -c`, which may not know that: shell_quote().
[[nodiscard]] std::string typed_word(std::string_view word);
[[nodiscard]] std::string typed_line(const std::vector<std::string>& words);

}  // namespace headroom
