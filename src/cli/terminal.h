// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "report/layout.h"

namespace headroom::cli {

// How to lay out text for the terminal (or file) behind `fd`: its width, or COLUMNS, or 80, and colour only on a
// terminal, unless the configuration says otherwise; no colour with NO_COLOR; block characters where the locale is
// UTF-8.
[[nodiscard]] report::TextOptions text_options(int fd);

// Rows of the terminal behind `fd`; nothing where it does not say.
[[nodiscard]] std::optional<std::size_t> rows_of(int fd);

// Whether lines can be painted over there: on a terminal, and not on a dumb one.
[[nodiscard]] bool can_repaint(int fd);

// Writes to a terminal, pipe or file without ever making the caller wait: a terminal may be stopped (Ctrl-S), a pager
// may not read on. What cannot be written now is kept, up to a limit; what comes beyond it is left out, and that is
// said.
class Screen {
 public:
  explicit Screen(int fd);
  ~Screen();  // waits a moment for what is left, then leaves it
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void put(std::string text);
  [[nodiscard]] bool waiting() const;  // something is still to be written
  void flush();                        // waits for that, but not for long

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace headroom::cli
