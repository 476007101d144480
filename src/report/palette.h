// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "report/layout.h"

// The few colours that Headroom has, by what they mean: the terminal's own, so that they suit its background. They only
// support what the words say.
namespace headroom::report {

namespace detail {
[[nodiscard]] inline std::string painted(std::string_view text, std::string_view code, const TextOptions& options) {
  if (!options.colour || text.empty()) return std::string(text);
  return std::string("\033[").append(code).append("m").append(text).append("\033[0m");
}
}  // namespace detail

// What failed or is lost; what needs a look; what went well; what can be passed over.
[[nodiscard]] inline std::string alarm(std::string_view text, const TextOptions& options) {
  return detail::painted(text, "1;31", options);
}
[[nodiscard]] inline std::string warning(std::string_view text, const TextOptions& options) {
  return detail::painted(text, "33", options);
}
[[nodiscard]] inline std::string good(std::string_view text, const TextOptions& options) {
  return detail::painted(text, "32", options);
}
[[nodiscard]] inline std::string faint(std::string_view text, const TextOptions& options) {
  return detail::painted(text, "2", options);
}
// A name that can be typed: an option, a verb, a command.
[[nodiscard]] inline std::string typed(std::string_view text, const TextOptions& options) {
  return detail::painted(text, "36", options);
}

}  // namespace headroom::report
