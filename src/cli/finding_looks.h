// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "cli/cli11.h"
#include "diagnose/explain.h"
#include "report/live_findings.h"

// Looks for findings of a recording that grows: --on-finding, `serve` and `top`.
namespace headroom::cli {

struct FindingLooks {
  Nanos every = 10 * kSecond;  // between looks, and longer where a look costs much
  report::LiveRule rule;
};
// --finding-looks, which no help shows: nobody who tests waits two minutes.
void declare_finding_looks(CLI::App& app, FindingLooks& looks);

// What LiveFindings::look wants beside `whole`: the last minutes explained alone, in which a minute's standstill is no
// small part. Nothing where the recording has no more than these. `options`: without a window.
[[nodiscard]] std::optional<Explanation> explain_last_minutes(const Recording& recording, ExplainOptions options);

}  // namespace headroom::cli
