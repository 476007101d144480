// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "base/fd.h"
#include "base/result.h"
#include "base/time.h"

namespace headroom {

// The clocks of a sampler and its way of waiting: a parameter, so that tests neither sleep nor drift.
class SampleClock {
 public:
  SampleClock() = default;
  SampleClock(const SampleClock&) = delete;
  SampleClock& operator=(const SampleClock&) = delete;
  virtual ~SampleClock() = default;

  virtual Nanos boottime() = 0;
  virtual Nanos monotonic() = 0;  // stands still while the machine is suspended
  virtual Nanos realtime() = 0;
  // Returns when boottime() has reached `until`, or earlier when interrupted.
  virtual void wait_until(Nanos until) = 0;
  // Ends the wait under way, or the next one, from any thread.
  virtual void interrupt() = 0;
};

// The machine's clocks. One thread waits.
class SystemClock final : public SampleClock {
 public:
  [[nodiscard]] static Result<std::unique_ptr<SystemClock>> create();

  Nanos boottime() override { return boottime_now(); }
  Nanos monotonic() override { return monotonic_now(); }
  Nanos realtime() override { return realtime_now(); }
  void wait_until(Nanos until) override;
  void interrupt() override;

 private:
  Fd timer_, wake_;
};

}  // namespace headroom
