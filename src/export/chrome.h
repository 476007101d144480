// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "export/output.h"
#include "model/explanation.h"
#include "model/recording.h"

namespace headroom {

// The recording as a Chrome trace (chrome://tracing, ui.perfetto.dev): for each GPU the accounts of its time, the
// findings over the time that they claim, its gauges as counters (those that move) and a slice per process that held a
// context; one group for the processes of the host, those of a batch by their tasks' names; events as instants. Times
// are microseconds since the first thing that is known.
[[nodiscard]] Result<void> write_chrome_trace(const Recording& recording, const Explanation& explanation,
                                              const Output& output);

}  // namespace headroom
