// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/batch.h"
#include "model/recording.h"

// What a batch tells its recording (kinds and attributes: model/events.h).
namespace headroom::batch {

[[nodiscard]] Event start_event(const TaskSpec& task, const Attempt& attempt, Nanos at);
[[nodiscard]] Event end_event(const TaskSpec& task, const Attempt& attempt, Nanos at);
// `waiting`: tasks that are ready and want a GPU.
[[nodiscard]] Event queue_event(std::int64_t waiting, Nanos at);

}  // namespace headroom::batch
