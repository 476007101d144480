// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/verbs.h"

namespace headroom::cli {

// A verb with its options declared.
struct DeclaredVerb {
  const Verb& verb;
  std::vector<std::string> after_dashes;
  CLI::App app;
  Action action;
};
[[nodiscard]] std::unique_ptr<DeclaredVerb> declare(const Verb& verb);

}  // namespace headroom::cli
