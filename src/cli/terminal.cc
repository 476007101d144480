// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <string>

#include "base/strings.h"
#include "cli/config.h"
#include "cli/environment.h"

namespace headroom::cli {

namespace {

std::string text_of(const char* name) { return environment(name).value_or(""); }

// The first of these that is set decides, as in setlocale(3).
bool utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = lower(text_of(name));
    if (!value.empty()) return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace

report::TextOptions text_options(int fd) {
  report::TextOptions options;
  winsize size{};
  const bool terminal = ::isatty(fd) != 0;
  if (config() && config()->width)
    options.width = *config()->width;
  else if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    options.width = size.ws_col;
  else if (const auto columns = parse_number<std::size_t>(text_of("COLUMNS")))
    options.width = *columns;
  options.colour = terminal && text_of("TERM") != "dumb";
  if (config() && config()->colour) options.colour = *config()->colour;
  if (!text_of("NO_COLOR").empty()) options.colour = false;
  options.utf8 = utf8_locale();
  return options;
}

std::optional<std::size_t> rows_of(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return std::nullopt;
  return size.ws_row;
}

bool can_repaint(int fd) { return ::isatty(fd) != 0 && text_of("TERM") != "dumb"; }

}  // namespace headroom::cli
