// SPDX-License-Identifier: Apache-2.0
#include "analyze/waits.h"

#include <algorithm>

namespace headroom {

namespace {

std::vector<WaitTarget> targets_of(const Recording& recording, ListId list) {
  std::vector<WaitTarget> targets;
  for (const TextId text : recording.lists[list])
    if (auto target = wait_target_of(recording.texts[text])) targets.push_back(std::move(*target));
  return targets;
}

// The list that held at `at`; kNoList before the first.
ListId list_at(const std::vector<ListRow>& rows, Nanos at) {
  const auto after =
      std::upper_bound(rows.begin(), rows.end(), at, [](Nanos t, const ListRow& row) { return t < row.at; });
  return after == rows.begin() ? kNoList : std::prev(after)->list;
}

// In poll a thread waits for files: for what, if they are of one kind.
WaitChannel polled(const std::vector<WaitTarget>& targets) {
  const auto channel = [](const WaitTarget& target) {
    switch (target.kind) {
      case WaitKind::kConnection:
      case WaitKind::kAccepted:
        return WaitChannel::kSocket;
      case WaitKind::kUnixSocket:
      case WaitKind::kPipe:
      case WaitKind::kFullPipe:
        return WaitChannel::kPipe;
      case WaitKind::kTerminal:
        return WaitChannel::kTerminal;
      case WaitKind::kChild:
      case WaitKind::kFile:
      case WaitKind::kDevice:
      case WaitKind::kFileLock:
        break;
    }
    return WaitChannel::kPoll;
  };
  const WaitChannel first = channel(targets.front());
  const bool alike =
      std::all_of(targets.begin(), targets.end(), [&](const auto& one) { return channel(one) == first; });
  return alike ? first : WaitChannel::kPoll;
}

// What went over connections between the looks at them, in the look at its end.
void add_carried(const Track& track, std::vector<Activity>& looks) {
  const Column *sent = track.find(Metric::kConnectionSent), *received = track.find(Metric::kConnectionReceived);
  if (!sent || !received) return;
  std::int64_t sent_before = 0, received_before = 0;
  auto look = looks.begin();
  for (std::size_t row = 0; row < track.at.size(); ++row) {
    if (!sent->has(row) || !received->has(row)) continue;
    while (look != looks.end() && look->end < track.at[row]) ++look;
    if (look != looks.end() && look->end == track.at[row] && look->waits_for != kNoList) {
      look->sent += static_cast<float>(std::max<std::int64_t>(0, sent->values[row] - sent_before));
      look->received += static_cast<float>(std::max<std::int64_t>(0, received->values[row] - received_before));
    }
    sent_before = sent->values[row], received_before = received->values[row];
  }
}

}  // namespace

void add_waits(const Recording& recording, JobView& view) {
  for (const SourceId id : recording.all(SourceKind::kProcessWaits)) {
    const SourceId process = recording.sources[static_cast<std::size_t>(id)].parent;
    if (process == kNoSource || static_cast<std::size_t>(process) >= view.did.size()) continue;
    const Track& track = track_of(recording, id);
    for (const ListRow& row : track.lists)
      if (!view.waits.contains(row.list))
        if (auto targets = targets_of(recording, row.list); !targets.empty())
          view.waits.emplace(row.list, std::move(targets));
    std::vector<Activity>& looks = view.did[static_cast<std::size_t>(process)];
    for (Activity& look : looks) {
      if (look.wait == WaitChannel::kUnknown || look.wait == WaitChannel::kRunning) continue;
      const auto waits = view.waits.find(list_at(track.lists, look.end));
      if (waits == view.waits.end()) continue;
      look.waits_for = waits->first;
      if (look.wait == WaitChannel::kPoll) look.wait = polled(waits->second);
    }
    add_carried(track, looks);
  }
}

}  // namespace headroom
