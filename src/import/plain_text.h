// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// The beginning of a log, which tells its format: a trace tells facts of its devices first.
inline constexpr std::size_t kLogHead = std::size_t{1} << 16;

// The log without the times in front of its lines, where those of its format are read from lines of their own;
// `columns` are those of its rows, from whoever knows them.
[[nodiscard]] std::optional<std::string> timed_by_lines(std::string_view text, std::string_view columns = "");

// The lines of a text that is kept in another form; nothing where they stand as they are. Of records whose lines are no
// log, it is the records that are told of, unless --columns says what is in them.
[[nodiscard]] std::optional<std::string> plain_lines(std::string_view text, std::string_view columns = "");

// What a terminal shows of it; nothing where that is the text itself.
[[nodiscard]] std::optional<std::string> on_terminal(std::string_view text);

// Whether these are the names of all columns, and one of them is a time.
[[nodiscard]] bool names_a_time(std::string_view columns);

}  // namespace headroom
