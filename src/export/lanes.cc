// SPDX-License-Identifier: Apache-2.0
#include "export/lanes.h"

#include <algorithm>
#include <tuple>

namespace headroom {

std::vector<std::size_t> lanes_of(const std::vector<Extent>& stretches) {
  std::vector<std::vector<Nanos>> open;  // per lane: ends of what is open, the outermost first
  std::vector<std::size_t> lanes;
  for (const Extent& stretch : stretches) {
    std::size_t lane = 0;
    for (; lane < open.size(); ++lane) {
      std::vector<Nanos>& ends = open[lane];
      while (!ends.empty() && ends.back() <= stretch.begin) ends.pop_back();
      if (ends.empty() || stretch.end <= ends.back()) break;
    }
    if (lane == open.size()) open.emplace_back();
    open[lane].push_back(stretch.end);
    lanes.push_back(lane);
  }
  return lanes;
}

std::vector<PlacedSlice> place(std::vector<LooseSlice>& slices, std::int64_t free) {
  std::stable_sort(slices.begin(), slices.end(), [](const LooseSlice& a, const LooseSlice& b) {
    return std::tuple(a.group, a.thread, a.stretch.begin, -a.stretch.end) <
           std::tuple(b.group, b.thread, b.stretch.begin, -b.stretch.end);
  });
  std::vector<PlacedSlice> placed;
  for (std::size_t i = 0; i < slices.size(); i = placed.size()) {
    std::vector<Extent> stretches;
    for (std::size_t k = i;
         k < slices.size() && slices[k].group == slices[i].group && slices[k].thread == slices[i].thread; ++k)
      stretches.push_back(slices[k].stretch);
    std::vector<std::int64_t> threads;
    for (const std::size_t lane : lanes_of(stretches)) {
      const bool opens = lane == threads.size();
      if (opens) threads.push_back(lane == 0 ? slices[i].thread : free++);
      placed.push_back({&slices[placed.size()], threads[lane], opens});
    }
  }
  return placed;
}

}  // namespace headroom
