// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace headroom {

// Nanoseconds. Instants are CLOCK_BOOTTIME of the recorded machine, or Unix time for logs that know no other clock.
using Nanos = std::int64_t;

inline constexpr Nanos kMicrosecond = 1'000;
inline constexpr Nanos kMillisecond = 1'000'000;
inline constexpr Nanos kSecond = 1'000'000'000;

inline constexpr double seconds(Nanos ns) { return static_cast<double>(ns) * 1e-9; }

[[nodiscard]] Nanos boottime_now();     // CLOCK_BOOTTIME: runs through suspend, never steps
[[nodiscard]] Nanos realtime_now();     // CLOCK_REALTIME: Unix time, may step
[[nodiscard]] Nanos monotonic_now();    // CLOCK_MONOTONIC
[[nodiscard]] Nanos thread_cpu_now();   // CPU time of the calling thread
[[nodiscard]] Nanos process_cpu_now();  // CPU time of this process

}  // namespace headroom
