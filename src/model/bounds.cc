// SPDX-License-Identifier: Apache-2.0
#include "model/bounds.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/losses.h"
#include "model/packed_recording.h"

namespace headroom {

namespace {

constexpr Nanos kDay = 86'400 * kSecond, kLongestInterval = 366 * kDay;
constexpr auto kGarbage = static_cast<std::uint8_t>(Absent::kGarbage);

bool is_instant(Nanos at) { return at >= kEarliest && at <= kLatest; }

bool has_bounds(const RecordingMeta& meta) {
  return is_instant(meta.start) && is_instant(meta.end) && meta.end >= meta.start && meta.interval >= 0 &&
         meta.interval <= kLongestInterval;
}
Nanos longest_of(std::size_t gpus) { return kLongestGpuTime / std::max<Nanos>(1, static_cast<Nanos>(gpus)); }

class Keeper {
 public:
  explicit Keeper(Recording& recording) : recording_(recording) {}

  void keep() {
    meta();
    for (std::size_t i = 0; i < recording_.tracks.size(); ++i) {
      Track& track = recording_.tracks[i];
      rows(track);
      for (Column& column : track.columns) values(column, track, static_cast<SourceId>(i));
      const std::vector<ListRow>& lists = track.lists;  // in order of time: of many millions the ends tell
      if (!lists.empty() && !(is_near(lists.front().at) && is_near(lists.back().at)))
        erase_wild(track.lists, "rows of a source", [this](const ListRow& row) { return is_near(row.at); });
    }
    erase_wild(recording_.events, "events", [this](const Event& event) {
      return is_near(event.at) && is_near(event.end.value_or(event.at)) && event.end.value_or(event.at) >= event.at;
    });
    for (Loss& loss : recording_.losses) {
      loss.count = std::max<std::int64_t>(0, loss.count);
      for (LossPlace& place : loss.places) {
        place.begin = std::clamp(place.begin, kEarliest, kLatest);
        place.end = std::clamp(place.end, place.begin, kLatest);
      }
    }
    for (const Loss& loss : found_) count_loss(recording_.losses, loss);
  }

 private:
  void lose(LossKind kind, std::string detail, std::int64_t count = 1, std::optional<LossPlace> place = std::nullopt) {
    count_loss(found_, make_loss(kind, count, std::move(detail), place));
  }

  // Within the span, or as far from it as the span is long, or a day: more belongs to another time.
  [[nodiscard]] bool is_near(Nanos at) const { return at >= first_ && at <= last_; }

  template <class T, class Keep>
  void erase_wild(std::vector<T>& list, std::string_view what, const Keep& keep) {
    const auto erased = std::erase_if(list, [&](const T& one) { return !keep(one); });
    if (erased > 0)
      lose(LossKind::kUnknownTime, fmt::format("{} at times far from the recording", what),
           static_cast<std::int64_t>(erased));
  }

  void meta() {
    RecordingMeta& meta = recording_.meta;
    const bool good = has_bounds(meta);
    if (!good) lose(LossKind::kUnknownTime, "begin, end or interval of the recording");
    meta.start = std::clamp(meta.start, kEarliest, kLatest);
    const Nanos longest = longest_of(recording_.all(SourceKind::kGpu).size());
    meta.end = std::clamp(meta.end, meta.start, kLatest);
    const bool too_long = meta.end - meta.start > longest;
    if (too_long) lose(LossKind::kUnknownTime, "the recording claims to be longer than can be");
    if (!good || too_long) meta.end = last_row(meta.start, longest);
    meta.interval = std::clamp<Nanos>(meta.interval, 0, kLongestInterval);
    const Nanos span = std::max<Nanos>(kDay, meta.end - meta.start);
    first_ = std::max(kEarliest, meta.start - span);
    last_ = std::min(kLatest, meta.end + span);
  }

  // Where the end is not known: the last instant that a row speaks about.
  [[nodiscard]] Nanos last_row(Nanos start, Nanos longest) const {
    Nanos last = start;
    for (const Track& track : recording_.tracks)
      if (!track.at.empty() && track.at.back() > last && track.at.back() <= kLatest &&
          track.at.back() - start <= longest)
        last = track.at.back();
    return last;
  }

  void rows(Track& track) {
    const auto begin = std::lower_bound(track.at.begin(), track.at.end(), first_);
    const auto end = std::upper_bound(begin, track.at.end(), last_);
    if (begin == track.at.begin() && end == track.at.end()) return;
    const auto from = begin - track.at.begin(), to = end - track.at.begin();
    lose(LossKind::kUnknownTime, "rows at times far from the recording", std::ssize(track.at) - (to - from));
    const auto cut = [&](auto& list) {
      list.erase(list.begin() + to, list.end());
      list.erase(list.begin(), list.begin() + from);
    };
    cut(track.at);
    for (Column& column : track.columns) {
      cut(column.values);
      if (!column.absent.empty()) cut(column.absent);
    }
  }

  void values(Column& column, const Track& track, SourceId source) {
    const MetricInfo& metric = info(column.metric);
    const auto outside = [&](std::int64_t value) { return value < metric.low || value > metric.high; };
    if (std::none_of(column.values.begin(), column.values.end(), outside)) return;
    const bool all_read = column.absent.empty();
    for (std::size_t row = 0; row < column.values.size(); ++row) {
      if (!outside(column.values[row]) || !column.has(row)) continue;
      const LossPlace place{track.at[row == 0 ? 0 : row - 1], track.at[row], source};
      if (metric.unknown) {
        lose(LossKind::kUnknownValue, fmt::format("{} {}", metric.name, column.values[row]));
        column.values[row] = *metric.unknown;
        continue;
      }
      lose(LossKind::kValueOutOfRange, fmt::format("{} {:g}", metric.name, to_unit(metric.id, column.values[row])), 1,
           place);
      if (column.absent.empty()) column.absent.assign(column.values.size(), 0);
      column.absent[row] = kGarbage;
      column.values[row] = 0;
    }
    if (!all_read)
      for (std::size_t row = 0; row < column.values.size(); ++row)
        if (!column.has(row)) column.values[row] = 0;
  }

  Recording& recording_;
  std::vector<Loss> found_;
  Nanos first_ = 0, last_ = 0;
};

}  // namespace

void keep_in_bounds(Recording& recording) { Keeper(recording).keep(); }

void keep_in_bounds(PackedRecording& packed) {
  const auto is_inside = [](const PackedColumn& column) {
    const MetricInfo& metric = info(column.metric);
    PackedNumbers::InOrder values = column.values.in_order();
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] < metric.low || values[i] > metric.high) return false;
    return true;
  };
  const RecordingMeta& meta = packed.recording.meta;
  const bool all_inside =
      has_bounds(meta) && meta.end - meta.start <= longest_of(packed.recording.all(SourceKind::kGpu).size()) &&
      std::all_of(packed.packed.begin(), packed.packed.end(), [&](const PackedTrack& track) {
        return (track.at.empty() || (track.at.front() >= meta.start && track.at.back() <= meta.end)) &&
               std::all_of(track.columns.begin(), track.columns.end(), is_inside);
      });
  if (!all_inside) packed = not_packed(unpacked(std::move(packed)));
  keep_in_bounds(packed.recording);
}

}  // namespace headroom
