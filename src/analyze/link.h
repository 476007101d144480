// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "analyze/stats.h"
#include "model/entities.h"
#include "model/thresholds.h"

namespace headroom {

// A device's PCIe link while kernels ran: an idle one is slowed down on purpose.
struct PcieLink {
  std::int64_t generation = 0, width = 0;                        // the most at any look at each; lanes
  std::optional<std::int64_t> generation_max, width_max;         // that device and slot allow together
  [[nodiscard]] std::optional<double> bytes_per_second() const;  // at best; nothing for a generation not known
  [[nodiscard]] bool narrow() const {
    return (generation_max && generation < *generation_max) || (width_max && width < *width_max);
  }
  [[nodiscard]] std::string words() const;  // "PCIe 4.0 x4 of 4.0 x16"
};

// Nothing where it was looked at too seldom while kernels ran.
[[nodiscard]] std::optional<PcieLink> link_under_load(const Track& track, const Device& device, const Window& window,
                                                      const Thresholds& limits);

}  // namespace headroom
