// SPDX-License-Identifier: Apache-2.0
#include "analyze/ranks.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "model/entities.h"

namespace headroom {

namespace {

bool at_once(const Process& one, const Process& other) {
  constexpr Nanos kGoesOn = std::numeric_limits<Nanos>::max();
  return one.start < other.end.value_or(kGoesOn) && other.start < one.end.value_or(kGoesOn);
}

}  // namespace

std::map<SourceId, std::int64_t> ranks_of(const Recording& recording, const std::set<SourceId>& processes) {
  std::map<std::int64_t, std::vector<std::pair<SourceId, Process>>> numbered;
  for (const SourceId id : processes) {
    const Process process = process_of(recording.sources[static_cast<std::size_t>(id)]);
    if (process.rank) numbered[*process.rank].emplace_back(id, process);
  }
  std::map<SourceId, std::int64_t> ranks;
  for (const auto& [rank, all] : numbered)
    for (const auto& [id, process] : all)
      if (std::none_of(all.begin(), all.end(), [&, self = id, &mine = process](const auto& other) {
            return other.first != self && at_once(mine, other.second);
          }))
        ranks[id] = rank;
  return ranks;
}

std::map<SourceId, std::int64_t> counting_ranks(const Recording& recording) {
  std::set<SourceId> processes;
  for (const SourceId id : recording.all(SourceKind::kMarks)) {
    const SourceId process = recording.sources[static_cast<std::size_t>(id)].parent;
    if (process != kNoSource) processes.insert(process);
  }
  return ranks_of(recording, processes);
}

}  // namespace headroom
