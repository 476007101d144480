// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/strings.h"

namespace headroom::cli {

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// The first of these that is set decides, as in setlocale(3).
bool utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = lower(environment(name));
    if (!value.empty()) return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace

report::TextOptions text_options(int fd) {
  report::TextOptions options;
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    options.width = size.ws_col;
  else if (const auto columns = parse_number<std::size_t>(environment("COLUMNS")))
    options.width = *columns;
  options.colour = ::isatty(fd) != 0 && environment("NO_COLOR").empty() && environment("TERM") != "dumb";
  options.utf8 = utf8_locale();
  return options;
}

}  // namespace headroom::cli
