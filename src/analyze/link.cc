// SPDX-License-Identifier: Apache-2.0
#include "analyze/link.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace headroom {

std::optional<double> PcieLink::bytes_per_second() const {
  constexpr std::array kPerLane{0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9};  // after the line's coding
  if (generation < 1 || generation > static_cast<std::int64_t>(kPerLane.size()) || width < 1) return std::nullopt;
  return kPerLane[static_cast<std::size_t>(generation - 1)] * static_cast<double>(width);
}

std::string PcieLink::words() const {
  return fmt::format("PCIe {}.0 x{} of {}.0 x{}", generation, width, generation_max.value_or(generation),
                     width_max.value_or(width));
}

std::optional<PcieLink> link_under_load(const Track& track, const Device& device, const Window& window,
                                        const Thresholds& limits) {
  const Column *util = track.find(Metric::kGpuUtil), *generation = track.find(Metric::kPcieLinkGen),
               *width = track.find(Metric::kPcieLinkWidth);
  if (!util || !generation || !width) return std::nullopt;
  const std::int64_t running = from_unit(Metric::kGpuUtil, limits[Threshold::kThrottleUtil]);
  PcieLink link;
  std::size_t generations = 0, widths = 0;
  bool runs = false;
  for (std::size_t row = track.at.size(); row-- > 0;) {
    if (track.at[row] <= window.begin || track.at[row] > window.end) continue;
    // Not every row has every reading: the next one of the utilisation is of the time in which the link was looked at.
    if (util->has(row)) runs = util->values[row] >= running;
    if (!runs) continue;
    if (generation->has(row)) link.generation = std::max(link.generation, generation->values[row]), ++generations;
    if (width->has(row)) link.width = std::max(link.width, width->values[row]), ++widths;
  }
  if (static_cast<double>(std::min(generations, widths)) < limits[Threshold::kThrottleLooks]) return std::nullopt;
  link.generation_max = device.pcie_link_gen_max;
  link.width_max = device.pcie_link_width_max;
  return link;
}

}  // namespace headroom
