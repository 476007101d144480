// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "export/output.h"
#include "model/recording.h"

namespace headroom {

// The recording as a Chrome trace (chrome://tracing, ui.perfetto.dev): a track group per GPU with its gauges as
// counters and a slice per process that held a context, one group for the processes of the host, and events as
// instants. Times are microseconds since the recording began.
[[nodiscard]] Result<void> write_chrome_trace(const Recording& recording, const Output& output);

}  // namespace headroom
