// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// A log whose lines a collector keeps in records with a time each: docker's {"log": "0, 97 %\n", "stream": …, "time":
// …}, journald's {"MESSAGE": …, "__REALTIME_TIMESTAMP": …}, and tables of a time and a line, as Loki's are exported.
// The lines in order of time, each with its time in front. Nothing for all other texts.
[[nodiscard]] std::optional<std::string> lines_of_records(std::string_view text);

}  // namespace headroom
