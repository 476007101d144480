// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "device/nvml_read.h"

namespace headroom {

// A ring buffer that the driver fills by itself, several times a second, and that is drained every few seconds: finer
// than polling, and cheaper. Each sample becomes a row at its own instant.
class SampleRing {
 public:
  SampleRing(unsigned type, Metric metric, SourceKind kind) : type_(type), metric_(metric), kind_(kind) {}

  // Samples from `since` on that were not seen before. False when the GPU is lost.
  bool drain(const Look& look, const std::string& uuid, SourceId gpu, Nanos since);

 private:
  bool prepare(const Look& look);
  void tell_losses(const Look& look, const std::string& uuid, std::int64_t strange, std::optional<Nanos> overrun_since,
                   SourceId gpu) const;
  void follow_clock_step(Nanos clock_offset);
  void add(const Look& look, Nanos at, const nvml::Value& value, unsigned type);

  unsigned type_;
  Metric metric_;
  SourceKind kind_;
  SourceId source_ = kNoSource;
  bool asked_ = false, supported_ = true;
  std::size_t capacity_ = 0;  // samples the driver keeps; 0: not known
  std::vector<nvml::Sample> buffer_;
  unsigned long long last_seen_ = 0;  // the driver's time stamp, CLOCK_REALTIME in microseconds
  std::optional<Nanos> last_at_;      // of the last row
  std::optional<Nanos> last_offset_;
};

}  // namespace headroom
