// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "cli/finding_looks.h"
#include "report/notice.h"

// Commands of the user's that are told how it went: --on-end and --on-finding of `run`, `record` and `batch`.
namespace headroom::cli {

struct Hooks {
  std::string on_end, on_finding;
  FindingLooks looks;  // while the work goes on
  [[nodiscard]] bool any() const { return !on_end.empty() || !on_finding.empty(); }
};
void declare_hooks(CLI::App& app, Hooks& hooks);

// After all else of the verb, but for its exit code, which this does not change: what goes wrong is said. Each option
// has its time, and a signal ends all of them. `told`: what was told while the work went on.
void call_hooks(const Hooks& hooks, const report::EndNotice& end, const Explanation* explanation,
                const std::vector<report::ToldFinding>& told);

}  // namespace headroom::cli
