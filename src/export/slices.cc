// SPDX-License-Identifier: Apache-2.0
#include "export/slices.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace headroom {

std::vector<AttemptSlice> attempt_slices(const Recording& recording) {
  std::vector<AttemptSlice> slices;
  std::map<AttemptId, std::size_t> running;  // positions in `slices`
  for (const Event& event : recording.events) {
    if (const auto started = of_event<events::AttemptStart>(event)) {
      running[started->attempt] = slices.size();
      slices.push_back({*started, std::nullopt, {event.at, recording.meta.end}});
    } else if (const auto ended = of_event<events::AttemptEnd>(event)) {
      const auto begun = running.find(ended->start.attempt);
      if (begun == running.end()) continue;
      slices[begun->second].outcome = ended->outcome;
      slices[begun->second].stretch.end = event.at;
      running.erase(begun);
    }
  }
  return slices;
}

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

std::vector<NestedSlice> nested_slices(const Recording& recording, const std::vector<ListRow>& rows, Nanos longest,
                                       Nanos end) {
  static const std::vector<TextId> kNothing;
  std::vector<NestedSlice> slices;
  std::vector<std::size_t> open;  // positions in `slices`
  Nanos until = 0;                // how far the open ones reach
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::vector<TextId>& now = rows[i].list == kNoList ? kNothing : recording.lists[rows[i].list];
    std::size_t same = 0;
    while (rows[i].at <= until && same < open.size() && same < now.size() && slices[open[same]].name == now[same])
      ++same;
    open.resize(same);
    const Nanos next = i + 1 < rows.size() ? rows[i + 1].at : std::max(end, rows[i].at);
    until = next - rows[i].at > longest ? rows[i].at + longest : next;
    for (std::size_t level = same; level < now.size(); ++level) {
      open.push_back(slices.size());
      slices.push_back({rows[i].at, until, now[level]});
    }
    for (const std::size_t slice : open) slices[slice].end = until;
  }
  return slices;
}

}  // namespace headroom
