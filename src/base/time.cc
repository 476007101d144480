// SPDX-License-Identifier: Apache-2.0
#include "base/time.h"

#include <ctime>

namespace headroom {

namespace {
Nanos read_clock(clockid_t id) {
  timespec now{};
  ::clock_gettime(id, &now);
  return static_cast<Nanos>(now.tv_sec) * kSecond + now.tv_nsec;
}
}  // namespace

Nanos boottime_now() { return read_clock(CLOCK_BOOTTIME); }
Nanos realtime_now() { return read_clock(CLOCK_REALTIME); }
Nanos monotonic_now() { return read_clock(CLOCK_MONOTONIC); }
Nanos thread_cpu_now() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }
Nanos process_cpu_now() { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

}  // namespace headroom
