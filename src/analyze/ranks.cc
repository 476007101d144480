// SPDX-License-Identifier: Apache-2.0
#include "analyze/ranks.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "model/entities.h"

namespace headroom {

namespace {

struct Life {
  SourceId process = kNoSource;
  Nanos start = 0, end = 0;
};

// Those of them that lived while no other one did.
std::vector<SourceId> alone(std::vector<Life> lives) {
  std::sort(lives.begin(), lives.end(), [](const Life& x, const Life& y) { return x.start < y.start; });
  std::vector<SourceId> found;
  Nanos over = std::numeric_limits<Nanos>::min();  // all earlier ones are
  for (std::size_t i = 0; i < lives.size(); ++i) {
    const bool beside_later = i + 1 < lives.size() && lives[i + 1].start < lives[i].end;
    if (lives[i].start >= over && !beside_later) found.push_back(lives[i].process);
    over = std::max(over, lives[i].end);
  }
  return found;
}

}  // namespace

std::map<SourceId, std::int64_t> ranks_of(const Recording& recording, const std::set<SourceId>& processes) {
  constexpr Nanos kGoesOn = std::numeric_limits<Nanos>::max();
  std::map<std::int64_t, std::vector<Life>> numbered;
  for (const SourceId id : processes) {
    const Process process = process_of(recording.sources[static_cast<std::size_t>(id)]);
    if (process.rank) numbered[*process.rank].push_back({id, process.start, process.end.value_or(kGoesOn)});
  }
  std::map<SourceId, std::int64_t> ranks;
  for (auto& [rank, lives] : numbered)
    for (const SourceId process : alone(std::move(lives))) ranks[process] = rank;
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
