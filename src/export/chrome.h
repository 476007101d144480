// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include "export/output.h"
#include "model/explanation.h"
#include "model/recording.h"

namespace headroom {

inline constexpr std::string_view kChromeBeginning = R"({"displayTimeUnit":"ms","otherData":{"exporter":"headroom")";

// The recording as a Chrome trace (chrome://tracing, ui.perfetto.dev): for each GPU the accounts of its time, the
// findings over the time that they claim, the tasks of a batch, its gauges as counters (those that move) and a slice
// per process that held a context; one group for the processes of the host, those of a batch by their tasks' names;
// events as instants, and findings where they begin. Times are microseconds since the first thing that is known. Slices
// of one track are apart or nested: what would overlap goes to a track of its own beside it.
[[nodiscard]] Result<void> write_chrome_trace(const Recording& recording, const Explanation& explanation,
                                              const Output& output);

}  // namespace headroom
