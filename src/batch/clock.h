// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/time.h"

namespace headroom::batch {

// The time, as a parameter: a test drives a whole batch without waiting.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  [[nodiscard]] virtual Nanos boottime() const = 0;  // never steps, runs through suspend
  [[nodiscard]] virtual Nanos realtime() const = 0;  // Unix time, may step
};

class MachineClock final : public Clock {
 public:
  [[nodiscard]] Nanos boottime() const override { return boottime_now(); }
  [[nodiscard]] Nanos realtime() const override { return realtime_now(); }
};

}  // namespace headroom::batch
