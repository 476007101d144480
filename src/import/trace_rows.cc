// SPDX-License-Identifier: Apache-2.0
#include "import/trace_rows.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace headroom {

namespace {

bool ends_later(const WorkInterval& a, const WorkInterval& b) { return a.end > b.end; }

}  // namespace

WorkRows::WorkRows(RecordingSink& sink, SourceId source, Nanos start) : sink_(sink), source_(source) {
  row_ = {start, list(), 0};
}

ListId WorkRows::list() {
  std::uint32_t state = 0;
  for (std::size_t i = 0; i < open_.size(); ++i)
    if (open_[i] > 0) state |= 1U << i;
  constexpr std::uint32_t kQueued = 1U << static_cast<std::uint32_t>(GpuWork::kQueued);
  if (state != kQueued) state &= ~kQueued;  // of interest only while nothing runs
  const auto [entry, is_new] = lists_.try_emplace(state, kNoList);
  if (is_new) {
    std::vector<TextId> texts;
    for (const GpuWorkInfo& work : kGpuWorks)
      if ((state >> static_cast<std::uint32_t>(work.id) & 1U) != 0) texts.push_back(sink_.intern(work.name));
    entry->second = sink_.intern_list(texts);
  }
  return entry->second;
}

// What has become of the state at `at`, once nothing more changes there.
void WorkRows::put(Nanos at) {
  const ListId now = list();
  if (now == row_.list) return;
  if (at > row_.at) {
    sink_.add_list_row(source_, row_);
    row_.value = 0;
  }
  row_.at = at;
  row_.list = now;
}

void WorkRows::close_until(Nanos at) {
  while (!ends_.empty() && ends_.front().end <= at) {
    const Nanos end = ends_.front().end;
    for (; !ends_.empty() && ends_.front().end == end; ends_.pop_back()) {
      --open_[static_cast<std::size_t>(ends_.front().what)];
      std::pop_heap(ends_.begin(), ends_.end(), ends_later);
    }
    if (end < at) put(end);
  }
}

void WorkRows::add(const WorkInterval& work) {
  close_until(work.begin);
  if (work.end > work.begin) {
    ++open_[static_cast<std::size_t>(work.what)];
    ends_.push_back(work);
    std::push_heap(ends_.begin(), ends_.end(), ends_later);
  }
  put(work.begin);
  row_.value += info(work.what).kernel ? 1 : 0;
}

void WorkRows::finish() {
  close_until(INT64_MAX);
  sink_.add_list_row(source_, row_);
}

namespace {

// Rows of what is open at each instant.
class NestedRows {
 public:
  NestedRows(std::size_t deepest, Times times, const Dictionary& names, MemorySink& sink, SourceId source)
      : deepest_(deepest), times_(times), names_(names), known_(names.texts(), kNoText), sink_(sink), source_(source) {}

  void add(const NamedInterval& one);  // in order of their begin
  void finish() {
    close_until(INT64_MAX);
    if (row_) sink_.add_list_row(source_, *row_);
  }

 private:
  struct Open : NamedInterval {
    ListId counted = kNoList;  // as what it was counted
    std::int32_t nth = 0;
  };
  void put(Nanos at);
  void close_until(Nanos at);

  std::size_t deepest_;
  Times times_;
  const Dictionary& names_;
  std::vector<TextId> texts_, known_;  // known_: by name
  MemorySink& sink_;
  SourceId source_;
  std::vector<Open> open_;  // those of any depth, the outermost first; then the others by their depth
  std::unordered_map<ListId, std::int32_t> begun_;
  std::optional<ListRow> row_;
};

void NestedRows::put(Nanos at) {
  texts_.clear();
  const bool all = open_.empty() || open_.back().depth == NamedInterval::kAnyDepth;
  for (const NamedInterval& one : open_) {
    if (!all && one.depth == NamedInterval::kAnyDepth) continue;
    TextId& text = known_[one.name];
    if (text == kNoText) text = sink_.intern(names_.text_of(one.name));
    texts_.push_back(text);
  }
  const ListId list = sink_.intern_list(texts_);
  if (list == kNoList) return;
  if (times_ == Times::kCounted && !open_.empty() && open_.back().counted != list)
    open_.back().counted = list, open_.back().nth = ++begun_[list];
  const std::int32_t nth = open_.empty() ? 0 : open_.back().nth;
  if (row_ && row_->list == list && row_->value == nth) return;
  if (row_ && row_->at < at) sink_.add_list_row(source_, *row_);
  row_ = ListRow{at, list, nth};
}

void NestedRows::close_until(Nanos at) {
  for (;;) {
    Nanos first = INT64_MAX;
    for (const NamedInterval& one : open_) first = std::min(first, one.end);
    if (open_.empty() || first > at) return;
    std::erase_if(open_, [&](const NamedInterval& one) { return one.end <= first; });
    put(first);
  }
}

void NestedRows::add(const NamedInterval& one) {
  // What follows another begins, by the rounding of a profiler's times, now and then a little before its end.
  for (NamedInterval& other : open_)
    if (other.end > one.begin && other.end - one.begin <= kMicrosecond && one.end > other.end) other.end = one.begin;
  close_until(one.begin);
  Open opened{one};
  if (one.depth != NamedInterval::kAnyDepth)
    std::erase_if(open_, [&](const NamedInterval& other) { return other.depth == one.depth; });
  const auto within =
      std::find_if(open_.begin(), open_.end(), [&](const NamedInterval& other) { return other.depth > one.depth; });
  if (one.depth == NamedInterval::kAnyDepth && within != open_.begin()) {
    if (static_cast<std::size_t>(within - open_.begin()) >= deepest_) return;
    opened.end = std::min(opened.end, std::prev(within)->end);
  }
  open_.insert(within, opened);
  put(one.begin);
}

}  // namespace

void write_nested(std::vector<NamedInterval> intervals, std::size_t deepest, Times times, const Dictionary& names,
                  MemorySink& sink, SourceId source) {
  std::sort(intervals.begin(), intervals.end(), [](const NamedInterval& a, const NamedInterval& b) {
    return std::tuple(a.begin, a.depth, -a.end) < std::tuple(b.begin, b.depth, -b.end);
  });
  sink.reserve_list_rows(source, 2 * intervals.size() + 1);
  NestedRows rows(deepest, times, names, sink, source);
  for (const NamedInterval& one : intervals)
    if (one.end > one.begin) rows.add(one);
  rows.finish();
}

}  // namespace headroom
