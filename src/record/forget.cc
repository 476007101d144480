// SPDX-License-Identifier: Apache-2.0
#include "record/forget.h"

#include <algorithm>

#include "model/events.h"

namespace headroom {

void forget_rows(Track& track, Nanos instant) {
  const auto rows = std::lower_bound(track.at.begin(), track.at.end(), instant) - track.at.begin();
  const auto cut = [rows](auto& list) { list.erase(list.begin(), list.begin() + std::min(rows, std::ssize(list))); };
  cut(track.at);
  for (Column& column : track.columns) {
    cut(column.values);
    cut(column.absent);
  }
}

namespace {

// A row of these kinds holds until the next one.
bool holds(SourceKind kind) { return kind == SourceKind::kMarks || kind == SourceKind::kProcessWaits; }

void forget_list_rows(Track& track, SourceKind kind, Nanos instant) {
  auto first = std::lower_bound(track.lists.begin(), track.lists.end(), instant,
                                [](const ListRow& row, Nanos at) { return row.at < at; });
  if (holds(kind) && first != track.lists.begin() && (first == track.lists.end() || first->at > instant))
    (--first)->at = instant;
  track.lists.erase(track.lists.begin(), first);
}

bool is_of_a_lost_gpu(const Event& event) {
  const auto kind = event_kind_of(event.kind);
  return kind == EventKind::kDeviceLost || kind == EventKind::kDeviceBack;
}

}  // namespace

void forget_before(Recording& recording, Nanos instant) {
  RecordingMeta& meta = recording.meta;
  if (instant <= meta.start) return;
  if (meta.start_realtime != 0) meta.start_realtime += instant - meta.start;
  meta.start = instant;
  meta.end = std::max(meta.end, instant);
  for (std::size_t i = 0; i < recording.tracks.size(); ++i) {
    forget_rows(recording.tracks[i], instant);
    forget_list_rows(recording.tracks[i], recording.sources[i].kind, instant);
  }
  std::erase_if(recording.events, [instant](const Event& event) {
    return event.end.value_or(event.at) < instant && !is_of_a_lost_gpu(event);
  });
}

}  // namespace headroom
