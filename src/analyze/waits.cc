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
        break;
    }
    return WaitChannel::kPoll;
  };
  const WaitChannel first = channel(targets.front());
  const bool alike =
      std::all_of(targets.begin(), targets.end(), [&](const auto& one) { return channel(one) == first; });
  return alike ? first : WaitChannel::kPoll;
}

// What went over each connection between the looks at it. One that counts less than before is another one, to the same
// place; what the first one had carried when a process was first looked at is not of this recording, if that ran
// before.
void add_carried(const Track& track, bool born, JobView& view) {
  const Column *sent = track.find(Metric::kConnectionSent), *received = track.find(Metric::kConnectionReceived);
  if (!sent || !received) return;
  std::map<ListId, std::size_t> last;
  for (std::size_t row = 0; row < track.at.size(); ++row) {
    const auto waits = view.waits.find(list_at(track.lists, track.at[row]));
    if (waits == view.waits.end() || !sent->has(row) || !received->has(row)) continue;
    const auto [before, first] = last.try_emplace(waits->first, row);
    const auto add = [&](const Column& column, std::optional<double>& sum) {
      const std::int64_t now = column.values[row], then = first ? 0 : column.values[before->second];
      sum = sum.value_or(0) + (first && !born ? 0.0 : static_cast<double>(now >= then ? now - then : now));
    };
    add(*sent, waits->second.sent);
    add(*received, waits->second.received);
    before->second = row;
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
          view.waits.emplace(row.list, WaitedFor{std::move(targets), std::nullopt, std::nullopt});
    for (Activity& look : view.did[static_cast<std::size_t>(process)]) {
      if (look.wait == WaitChannel::kUnknown || look.wait == WaitChannel::kRunning) continue;
      const auto waits = view.waits.find(list_at(track.lists, look.end));
      if (waits == view.waits.end()) continue;
      look.waits_for = waits->first;
      if (look.wait == WaitChannel::kPoll) look.wait = polled(waits->second.targets);
    }
    const Process facts = process_of(recording.sources[static_cast<std::size_t>(process)]);
    add_carried(track, facts.start >= recording.meta.start, view);
  }
}

}  // namespace headroom
