// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace headroom::cli {

// Exit codes of every verb (`headroom run -- CMD` returns CMD's own).
inline constexpr int kExitOk = 0, kExitFailed = 1, kExitUsage = 2, kExitBug = 70, kExitInterrupted = 130;

// Runs after the command line was parsed; returns the exit code.
using Action = std::function<int()>;

// One verb: a row of the table in main.cc. `declare` adds the verb's options to `app` and returns what to run.
// Everything after a bare "--" reaches the verb unparsed in `after_dashes`.
struct VerbInput {
  CLI::App& app;
  const std::vector<std::string>& after_dashes;
  bool has_dashes = false;
};
struct Verb {
  std::string_view name;
  std::string_view summary;
  Action (*declare)(VerbInput input);
};

// Prints "headroom: what" and the hint on stderr; returns the exit code that suits the error.
int report_error(const Error& error);

}  // namespace headroom::cli
