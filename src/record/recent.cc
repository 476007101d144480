// SPDX-License-Identifier: Apache-2.0
#include "record/recent.h"

#include <algorithm>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>

#include "record/forget.h"

namespace headroom {

namespace {

// With the list row before it, which may hold.
Track rows_from(const Track& track, Nanos instant) {
  const auto first = std::lower_bound(track.at.begin(), track.at.end(), instant) - track.at.begin();
  const auto rest = [first](const auto& list) {
    return std::decay_t<decltype(list)>(list.begin() + std::min(first, std::ssize(list)), list.end());
  };
  Track rows{.at = rest(track.at), .columns = {}};
  rows.columns.reserve(track.columns.size());
  for (const Column& column : track.columns)
    rows.columns.push_back({column.metric, rest(column.values), rest(column.absent)});
  auto list = std::lower_bound(track.lists.begin(), track.lists.end(), instant,
                               [](const ListRow& row, Nanos at) { return row.at < at; });
  if (list != track.lists.begin()) --list;
  rows.lists.assign(list, track.lists.end());
  return rows;
}

struct Kernels {
  std::optional<Nanos> last;  // that was seen before the instant
  bool any = false;           // ever, or a process had the GPU
};
void look_for_kernels(const Track& track, Nanos until, Kernels& kernels) {
  const Column* util = track.find(Metric::kGpuUtil);
  for (std::size_t row = util ? track.at.size() : 0; row-- > 0;) {
    if (!util->has(row) || util->values[row] <= 0) continue;
    kernels.any = true;
    if (track.at[row] > until) continue;
    kernels.last = std::max(kernels.last.value_or(track.at[row]), track.at[row]);
    return;
  }
}

}  // namespace

Nanos last_kernels_before(const Recording& recording, Nanos until) {
  Nanos from = until;
  std::map<SourceId, Kernels> gpus;
  for (std::size_t i = 0; i < recording.sources.size(); ++i) {
    const Source& source = recording.sources[i];
    const auto id = static_cast<SourceId>(i);
    if (source.kind == SourceKind::kGpu || source.kind == SourceKind::kGpuUtilRing)
      look_for_kernels(recording.tracks[i], until, gpus[source.kind == SourceKind::kGpu ? id : source.parent]);
    if (source.kind == SourceKind::kGpuProcess && !recording.tracks[i].at.empty()) gpus[source.parent].any = true;
  }
  for (const auto& [gpu, kernels] : gpus)
    if (kernels.any) from = std::min(from, kernels.last.value_or(recording.meta.start) - kSecond);
  return from;
}

RecentPart::RecentPart(Recording& whole, Nanos instant) : whole_(whole) {
  part_.meta = whole.meta;
  part_.events = whole.events;
  part_.losses = whole.losses;
  part_.tracks.reserve(whole.tracks.size());
  for (const Track& track : whole.tracks) part_.tracks.push_back(rows_from(track, instant));
  exchange_what_is_lent();
  forget_before(part_, instant);
}

RecentPart::~RecentPart() { exchange_what_is_lent(); }

void RecentPart::exchange_what_is_lent() {
  std::swap(part_.sources, whole_.sources);
  std::swap(part_.texts, whole_.texts);
  std::swap(part_.lists, whole_.lists);
}

}  // namespace headroom
