// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace headroom::cli {

// What /proc keeps from this user of other users' processes, and whose they are where their numbers are there, in words
// with what helps; "" where it hides none. `root`: "" is this machine; else a fixture with root/proc.
[[nodiscard]] std::string hidden_processes(const std::string& root = "");

}  // namespace headroom::cli
