// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "analyze/evidence.h"

namespace headroom {

// Tier P: what /proc counted of the process that owns the context, and of its helpers. It cannot tell one part of a
// start-up from another, so it speaks between kernels only.
class ProcessCounters final : public Evidence {
 public:
  explicit ProcessCounters(const Thresholds& limits) : limits_(limits) {}
  [[nodiscard]] std::optional<HostClaim> claim(const IdleStretch& stretch) const override;
  void cut(const Use& use, std::vector<Nanos>& cuts) const override;

 private:
  Thresholds limits_;
};

// The activity whose interval holds `at`, or nullptr.
[[nodiscard]] const Activity* activity_at(const std::vector<Activity>& list, Nanos at);

}  // namespace headroom
