// SPDX-License-Identifier: Apache-2.0
#include "import/trace_rows.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <unordered_map>

namespace headroom {

namespace {
constexpr std::size_t kDeepest = 16;  // of annotations within each other: more is a damaged trace
}

void WorkRows::add(GpuWork what, Nanos begin, Nanos end) {
  const bool counts = info(what).kernel;
  if (end <= begin) {
    if (counts) changes_.push_back({begin, what, 0, true});
    return;
  }
  changes_.push_back({begin, what, 1, counts});
  changes_.push_back({end, what, -1, false});
}

void WorkRows::write(RecordingSink& sink, SourceId source, Nanos start) && {
  std::sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) { return a.at < b.at; });
  std::array<std::int64_t, kGpuWorks.size()> open{};
  std::unordered_map<std::uint32_t, ListId> lists;
  const auto list_of = [&] {
    std::uint32_t state = 0;
    for (std::size_t i = 0; i < open.size(); ++i)
      if (open[i] > 0) state |= 1U << i;
    constexpr std::uint32_t kQueued = 1U << static_cast<std::uint32_t>(GpuWork::kQueued);
    if (state != kQueued) state &= ~kQueued;
    const auto [entry, is_new] = lists.try_emplace(state, kNoList);
    if (is_new) {
      std::vector<TextId> texts;
      for (const GpuWorkInfo& work : kGpuWorks)
        if ((state >> static_cast<std::uint32_t>(work.id) & 1U) != 0) texts.push_back(sink.intern(work.name));
      entry->second = sink.intern_list(texts);
    }
    return entry->second;
  };
  ListRow row{start, list_of(), 0};
  for (std::size_t i = 0; i < changes_.size();) {
    const Nanos at = changes_[i].at;
    std::int64_t begun = 0;
    for (; i < changes_.size() && changes_[i].at == at; ++i) {
      open[static_cast<std::size_t>(changes_[i].what)] += changes_[i].by;
      begun += changes_[i].begins ? 1 : 0;
    }
    if (const ListId list = list_of(); list != row.list) {
      if (at > row.at) sink.add_list_row(source, row);
      const std::int64_t kept = at > row.at ? 0 : row.value;
      row = {at, list, kept};
    }
    row.value += begun;
  }
  sink.add_list_row(source, row);
  changes_ = {};
}

void NestedRows::add(int depth, Nanos begin, Nanos end, TextId name) {
  if (end > begin) intervals_.push_back({begin, end, name, depth});
}

void NestedRows::write(RecordingSink& sink, SourceId source, const Dictionary& names) && {
  std::sort(intervals_.begin(), intervals_.end(), [](const Interval& a, const Interval& b) {
    return std::tuple(a.begin, a.depth, -a.end) < std::tuple(b.begin, b.depth, -b.end);
  });
  std::vector<Interval> open;  // the outermost first
  std::vector<TextId> texts;
  std::optional<ListRow> row;
  const auto put = [&](Nanos at) {
    texts.clear();
    for (const Interval& one : open) texts.push_back(sink.intern(names.text_of(one.name)));
    const ListId list = sink.intern_list(texts);
    if (list == kNoList || (row && row->list == list)) return;
    if (row && row->at < at) sink.add_list_row(source, *row);
    row = ListRow{at, list, 0};
  };
  const auto close_until = [&](Nanos at) {
    for (;;) {
      Nanos first = INT64_MAX;
      for (const Interval& one : open) first = std::min(first, one.end);
      if (first > at) return;
      std::erase_if(open, [&](const Interval& one) { return one.end <= first; });
      put(first);
    }
  };
  for (const Interval& one : intervals_) {
    close_until(one.begin);
    Interval opened = one;
    if (one.depth == kAnyDepth) {
      if (open.size() >= kDeepest) continue;
      if (!open.empty()) opened.end = std::min(opened.end, open.back().end);
      if (opened.end <= opened.begin) continue;
    } else {
      // A call may outlive the operator it began in, and one of its own depth ends where the next begins.
      std::erase_if(open, [&](const Interval& other) { return other.depth == one.depth; });
    }
    open.push_back(opened);
    std::stable_sort(open.begin(), open.end(), [](const Interval& a, const Interval& b) { return a.depth < b.depth; });
    put(one.begin);
  }
  close_until(INT64_MAX - 1);
  if (row) sink.add_list_row(source, *row);
  intervals_ = {};
}

}  // namespace headroom
