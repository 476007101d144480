// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/recording.h"

namespace headroom {

// Something outside that can be looked at: GPUs through NVML, processes through /proc. The sampler asks every reader
// at every tick; a reader decides by `at` which of its dearer calls are due (process lists at most once a second, fans
// every ten). It announces its sources, adds its rows and counts what it could not read; it never blocks for long and
// never fails: what cannot be read is Absent.
class Reader {
 public:
  Reader() = default;
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  virtual ~Reader() = default;

  // `at` is the tick's instant on CLOCK_BOOTTIME, rounded to 1 us; it only grows.
  virtual void read(Nanos at, RecordingSink& sink) = 0;
  // It has nothing to read before that instant, and may be left in peace until then; 0: it is to be asked at every
  // tick.
  [[nodiscard]] virtual Nanos idle_until() const { return 0; }
};

}  // namespace headroom
