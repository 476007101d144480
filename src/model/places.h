// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>

// The names of places in a job's code (Ledger::places): "burn (tools.py)", or of a function that is a part of several
// things "burn (tools.py) called by validate (train.py)".
namespace headroom {

inline constexpr std::string_view kCalledBy = " called by ";

[[nodiscard]] inline std::string with_caller(std::string_view function, std::string_view caller) {
  return fmt::format("{}{}{}", function, kCalledBy, caller);
}

// "burn (tools.py)" of either.
[[nodiscard]] inline std::string_view function_of(std::string_view place) {
  return place.substr(0, place.find(kCalledBy));
}

}  // namespace headroom
