// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/metric.h"
#include "model/wait_target.h"

// What the threads of a running process are at, at one instant.
namespace headroom {

struct ThreadNow {
  std::int64_t tid = 0;
  std::string name;   // as the kernel has it
  bool main = false;  // of the process
  bool ran = false;   // between the two looks at it: then where it waited says nothing of its stack
  char state = '?';   // as in /proc: R, S, D, T, t, Z, …
  WaitChannel waits_in = WaitChannel::kUnknown;
  std::vector<WaitTarget> waits_for;  // the first that is ready ends the wait; none: not known
  std::optional<bool> holds_gil;      // nothing: the interpreter does not tell
  bool cut = false;                   // there are more frames further out
  std::vector<std::string> frames;    // of Python, innermost first, each with the line that runs
};

struct ProcessNow {
  std::int64_t pid = 0;
  std::string command, python;  // python: "3.11"; "": no Python whose stacks were read
  std::string declined, hint;   // why no Python stacks were read, and what helps; "": they were
  std::vector<ThreadNow> threads;
  std::size_t torn = 0;                                        // stacks that changed while they were read, at each try
  std::size_t left_out = 0;                                    // threads with Python whose stacks are not read
  bool more_interpreters = false;                              // sub-interpreters, whose stacks are not read either
  std::vector<std::pair<std::int64_t, std::string>> children;  // that live, with their commands
};

}  // namespace headroom
