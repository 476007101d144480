// SPDX-License-Identifier: Apache-2.0
// A recording in memory into a sink, row by row.
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <utility>

#include "model/packed_recording.h"

namespace headroom {

namespace {

void replay_lists(const Recording& recording, const std::vector<SourceId>& ids, RecordingSink& sink) {
  std::vector<TextId> texts, list;
  std::vector<ListId> lists;
  for (const std::string& text : recording.texts) texts.push_back(sink.intern(text));
  for (const auto& known : recording.lists) {
    list.clear();
    for (const TextId id : known) list.push_back(texts[id]);
    lists.push_back(sink.intern_list(list));
  }
  for (std::size_t i = 0; i < recording.tracks.size(); ++i)
    for (const ListRow& row : recording.tracks[i].lists)
      sink.add_list_row(ids[i], {row.at, lists[row.list], row.value});
}

std::vector<SourceId> add_sources(const Recording& recording, RecordingSink& sink) {
  std::vector<SourceId> ids;
  for (Source source : recording.sources) {
    if (source.parent != kNoSource) {
      const auto parent = static_cast<std::size_t>(source.parent);
      source.parent = parent < ids.size() ? ids[parent] : kNoSource;
    }
    ids.push_back(sink.add_source(source));
  }
  return ids;
}

std::span<const std::int64_t> in_order(const std::vector<std::int64_t>& values) { return values; }
PackedNumbers::InOrder in_order(const PackedNumbers& values) { return values.in_order(); }

// One pass over time: the earliest row of all tracks, in order of sources.
template <class AnyTrack>
void replay_rows(const std::vector<AnyTrack>& tracks, const std::vector<SourceId>& ids, RecordingSink& sink) {
  using InOrder = decltype(in_order(AnyTrack().at));
  struct Rows {  // of a track
    InOrder at;
    std::vector<InOrder> values;
    std::size_t next = 0;
    std::vector<Cell> cells;
  };
  std::vector<Rows> rows;
  using Next = std::pair<Nanos, std::size_t>;
  std::priority_queue<Next, std::vector<Next>, std::greater<>> earliest;
  for (std::size_t i = 0; i < tracks.size(); ++i) {
    rows.push_back({in_order(tracks[i].at), {}, 0, {}});
    for (const auto& column : tracks[i].columns) {
      rows[i].values.push_back(in_order(column.values));
      rows[i].cells.push_back({column.metric, 0, std::nullopt});
    }
    if (!tracks[i].at.empty()) earliest.emplace(tracks[i].at[0], i);
  }
  while (!earliest.empty()) {
    const auto [at, source] = earliest.top();
    earliest.pop();
    auto& [instants, values, next, cells] = rows[source];
    const AnyTrack& track = tracks[source];
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const auto& column = track.columns[i];
      cells[i].value = values[i][next];
      cells[i].absent = column.has(next) ? std::nullopt : std::optional(static_cast<Absent>(column.absent[next]));
    }
    sink.add_row(ids[source], at, cells);
    if (++next < track.at.size()) earliest.emplace(instants[next], source);
  }
}

// What is no row.
void replay_others(const Recording& recording, const std::vector<SourceId>& ids, RecordingSink& sink) {
  replay_lists(recording, ids, sink);
  for (Event event : recording.events) {
    if (event.source != kNoSource) event.source = ids[static_cast<std::size_t>(event.source)];
    sink.add_event(event);
  }
  for (Loss loss : recording.losses) {
    for (LossPlace& place : loss.places)
      if (place.source != kNoSource) place.source = ids[static_cast<std::size_t>(place.source)];
    sink.add_loss(loss);
  }
}

}  // namespace

void replay(const Recording& recording, RecordingSink& sink) {
  sink.set_meta(recording.meta);
  const std::vector<SourceId> ids = add_sources(recording, sink);
  replay_rows(recording.tracks, ids, sink);
  replay_others(recording, ids, sink);
}

void replay(const PackedRecording& packed, RecordingSink& sink) {
  sink.set_meta(packed.recording.meta);
  const std::vector<SourceId> ids = add_sources(packed.recording, sink);
  replay_rows(packed.packed, ids, sink);
  replay_rows(packed.recording.tracks, ids, sink);
  replay_others(packed.recording, ids, sink);
}

std::size_t PackedRecording::rows_of(SourceId source) const {
  const auto i = static_cast<std::size_t>(source);
  return i < packed.size() ? packed[i].at.size() : recording.tracks[i].at.size();
}

Recording unpacked(PackedRecording packed) {
  const auto all = [](PackedNumbers& numbers) {
    const PackedNumbers taken = std::exchange(numbers, {});
    return std::vector<std::int64_t>(taken.begin(), taken.end());
  };
  for (std::size_t i = 0; i < packed.packed.size(); ++i) {
    Track& track = packed.recording.tracks[i];
    track.at = all(packed.packed[i].at);
    for (PackedColumn& column : packed.packed[i].columns)
      track.columns.push_back({column.metric, all(column.values), std::move(column.absent)});
  }
  return std::move(packed.recording);
}

}  // namespace headroom
