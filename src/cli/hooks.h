// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "report/notice.h"

// Commands of the user's that are told how it went: --on-end and --on-finding of `run`, `record` and `batch`.
namespace headroom::cli {

struct Hooks {
  std::string on_end, on_finding;
  [[nodiscard]] bool any() const { return !on_end.empty() || !on_finding.empty(); }
};
void declare_hooks(CLI::App& app, Hooks& hooks);

// After all else of the verb, but for its exit code, which this does not change: what goes wrong is said. Each option
// has its time, and a signal ends all of them.
void call_hooks(const Hooks& hooks, const report::EndNotice& end, const Explanation* explanation);

}  // namespace headroom::cli
