// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "base/time.h"
#include "live/signals.h"

namespace headroom {

// How a command of the user's went that was told something.
struct HookEnd {
  std::string trouble;       // what to say of it; "" where it ended with 0
  bool out_of_time = false;  // so that it was killed
  bool by_signal = false;    // one came to this process; killed, unless it had ended then
};

// Runs `command` by /bin/sh -c, in a process group of its own, with `document` on its standard input (a file, so it
// need not be read) and its output on standard error. Waits until it ends; at the instant `until`, or once `signals`
// has one, kills its group. What it left running in the background then runs on, unless it was killed.
[[nodiscard]] HookEnd run_hook(const std::string& command, std::string_view document, Nanos until, Signals& signals);

}  // namespace headroom
