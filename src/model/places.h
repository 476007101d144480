// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

// The names of places in a job's code (Ledger::places): "burn (tools.py)", or of a function that is a part of several
// things "burn (tools.py) called by validate (train.py)".
namespace headroom {

// What stands in a stack for frames without a name: the outermost ones of a stack that is deeper than is read, and code
// of a process that has made more of it than is kept.
inline constexpr std::string_view kCutFrames = "...", kOtherCode = "(other code)";

inline constexpr std::string_view kCalledBy = " called by ";

[[nodiscard]] inline std::string with_caller(std::string_view function, std::string_view caller) {
  return fmt::format("{}{}{}", function, kCalledBy, caller);
}

// "burn (tools.py:41)": the line of it. Line 0 is not known.
[[nodiscard]] inline std::string with_line(std::string_view place, std::int32_t line) {
  const auto close = place.find(')', place.find(" ("));
  if (line <= 0 || close == std::string_view::npos) return std::string(place);
  return fmt::format("{}:{}{}", place.substr(0, close), line, place.substr(close));
}

// "burn (tools.py)" of either.
[[nodiscard]] inline std::string_view function_of(std::string_view place) {
  return place.substr(0, place.find(kCalledBy));
}

}  // namespace headroom
