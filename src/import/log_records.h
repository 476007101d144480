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

// A line that was kept, and when, with as many digits of a second in each.
struct KeptLine {
  std::string time, line;
};
// What a line of such a log keeps, where each is a record of its own: an object of JSON, or containerd's form. Nothing
// where it is none.
[[nodiscard]] std::optional<KeptLine> kept_line(std::string_view record);

}  // namespace headroom
