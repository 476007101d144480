// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/recording.h"

namespace headroom {

// A CSV of how long each step of each worker of a distributed job took: columns worker (or rank), step (iteration,
// time: its number), and step_time or batch_time, with a unit (_s, _ms, _us, _ns) or, where the times are relative,
// without one; others are passed over. In the recording each worker counts its steps on a clock of its own, which
// begins at 0.
[[nodiscard]] bool is_step_times(std::string_view text);  // by its header
[[nodiscard]] Result<Recording> read_step_times(const std::string& name, std::string_view text);

}  // namespace headroom
