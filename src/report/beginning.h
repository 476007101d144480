// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>

// How documents begin: the verb that writes them knows its own by it, and replaces no other file.
namespace headroom::report {

[[nodiscard]] inline std::string html_beginning(std::string_view verb) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"generator\" "
      "content=\"headroom {}\">\n",
      verb);
}

// What Markdown shows nowhere: a link that nothing refers to.
[[nodiscard]] inline std::string markdown_beginning(std::string_view verb) {
  return fmt::format("[//]: # (headroom {})\n\n", verb);
}

}  // namespace headroom::report
