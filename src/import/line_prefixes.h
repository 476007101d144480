// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// A CSV log whose lines have the name of their writer in front, as pdsh, srun --label, journald and docker compose put
// it there: "node1: 2025/03/10 10:15:01.120, 0, 97 %". The log without them, line by line; lines of writers without a
// row are empty. Where several write rows, a column "hostname" names them. Nothing for all other texts.
[[nodiscard]] std::optional<std::string> without_prefixes(std::string_view text);
// Whether a log that begins so is one.
[[nodiscard]] bool has_prefixes(std::string_view head);

// A log whose lines have a time in front and a blank behind it, as `kubectl logs --timestamps` and `ts '%F %T'` put it
// there: each time a line of its own, above the lines that had it; none where the rows have times of their own, as
// their header says, or whoever knows it. Nothing for all other texts.
[[nodiscard]] std::optional<std::string> stamps_as_lines(std::string_view text, bool rows_have_times = false);

// Whether the rows behind such times have times of their own, by the beginning of the log.
[[nodiscard]] bool stamped_rows_have_times(std::string_view head);

// A text for a terminal without what sets colours and clears the screen there; nothing where it has nothing of that.
[[nodiscard]] std::optional<std::string> without_escapes(std::string_view text);

}  // namespace headroom
