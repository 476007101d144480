// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/time.h"
#include "cli/cli11.h"
#include "diagnose/explain.h"
#include "model/metric.h"
#include "report/live_findings.h"

namespace headroom::cli {

// The state of an SQLite file and its log that every write changes: numbers, sizes and times of both; zeros where there
// is no such file.
using FileTrace = std::array<std::int64_t, 6>;
[[nodiscard]] FileTrace trace_of(const std::string& path);

// A growing file that was last read so long ago is read again, changed or not: a recorder writes every two seconds, and
// where nothing more comes it may be gone.
inline constexpr Nanos kSilent = 6 * kSecond;

// A growing recording is read each second, and less often where reading and explaining it would take more than one part
// in so many of a core.
inline constexpr Nanos kLookEvery = 1 * kSecond, kLookCostParts = 50;
inline constexpr std::size_t kMostProcesses = 200;  // of a view

[[nodiscard]] inline std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Metrics that neither an explanation nor a view of it looks at, for ReadOptions::leave_out.
[[nodiscard]] std::span<const Metric> metrics_not_viewed();

// Looks for findings of a recording that grows: --on-finding, `serve` and `top`.

struct FindingLooks {
  Nanos every = 10 * kSecond;  // between looks, and longer where a look costs much
  report::LiveRule rule;
};
// --finding-looks, which no help shows: nobody who tests waits two minutes.
void declare_finding_looks(CLI::App& app, FindingLooks& looks);

// The second argument of LiveFindings::look: the last minutes explained alone, in which a minute's standstill is no
// small part. Nothing where the recording has no more than these. `options`: without a window.
[[nodiscard]] std::optional<Explanation> explain_last_minutes(const Recording& recording, ExplainOptions options);

}  // namespace headroom::cli
