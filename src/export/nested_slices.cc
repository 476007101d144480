// SPDX-License-Identifier: Apache-2.0
#include "export/nested_slices.h"

#include <algorithm>

namespace headroom {

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
