// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "analyze/stats.h"
#include "model/recording.h"
#include "model/thresholds.h"

namespace headroom {

// The part of a log in which memory was taken on a GPU, as a job takes it, where that is not all of it.
struct HeldMemory {
  Nanos held = 0, observed = 0;  // of the readings' time
  double busy = 0;               // the mean utilisation in that part
};

// By readings of utilisation and memory; nothing where memory was taken all the time, or hardly ever, or where no
// reading tells.
[[nodiscard]] std::optional<HeldMemory> held_memory(const Track& track, const Window& window, Nanos interval);

}  // namespace headroom
