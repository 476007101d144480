// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <limits>

#include "model/recording.h"

namespace headroom {

// Instants that a recording may name: up to the year 2116 by a clock that began in 1970. Sums and differences of any
// two fit.
inline constexpr Nanos kLatest = std::numeric_limits<Nanos>::max() / 2 - 86'400 * kSecond, kEarliest = -kLatest;
// The longest time that all GPUs of a recording may make up together: 146 years of one, 2.3 years of 64.
inline constexpr Nanos kLongestGpuTime = kLatest;
// GPUs of one recording, which may be of several machines.
inline constexpr std::size_t kMostGpus = 4'096;

// What a file says need not be true. Puts `recording` within the bounds that the rest of the program rests on, and
// counts what that took in its losses: values by the table of metrics (outside: absent; states of a newer program:
// unknown), instants and the span by the constants above. Every reader of recordings ends with this.
void keep_in_bounds(Recording& recording);

}  // namespace headroom
