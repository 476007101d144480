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

}  // namespace headroom
