// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "analyze/analysis.h"

namespace headroom::diagnose {

// How much of the job's time a GPU has any part in (Amdahl's two parts). A process that lives for at most half of the
// recording counts from its start to its end; a longer one from its first kernel to its last. Nothing where there is
// no job, or where the rest is less than a material part of the time.
[[nodiscard]] std::optional<Pipeline> pipeline(const Analysis& a);

}  // namespace headroom::diagnose
