// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <memory>

#include "device/nvml_read.h"

namespace headroom {

// GPU performance monitoring (Hopper and newer): activity of the SMs, the tensor and floating-point pipes and the
// memory, between two samples. It does not disturb profilers.
class Gpm {
 public:
  ~Gpm();
  Gpm() = default;
  Gpm(const Gpm&) = delete;
  Gpm& operator=(const Gpm&) = delete;

  // Cells for the time since the sample before this one; kNotSupported for all where there is no GPM.
  void read(const Look& look, Row& row);
  // Asks the driver the first time.
  [[nodiscard]] bool supported(const Look& look);

 private:
  bool prepare(const Look& look);
  void metrics(const Look& look, Row& row);

  enum class State { kUnknown, kOn, kOff } state_ = State::kUnknown;
  nvml::Return (*free_)(nvml::GpmSample) = nullptr;
  std::array<nvml::GpmSample, 2> samples_{};
  std::size_t current_ = 0;
  std::optional<Nanos> last_at_;
  std::unique_ptr<nvml::GpmMetricsGet> request_;
};

}  // namespace headroom
