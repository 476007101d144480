// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

namespace headroom::cli {

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
