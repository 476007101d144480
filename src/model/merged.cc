// SPDX-License-Identifier: Apache-2.0
// Recordings behind one another in one, and each of them out of it again.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/strings.h"
#include "model/bounds.h"
#include "model/dictionary.h"
#include "model/losses.h"
#include "model/part_facts.h"
#include "model/parts.h"

namespace headroom {

namespace {

// Times that are told as attrs of sources.
constexpr std::array<const char*, 4> kTimes{"start_ns", "end_ns", "no_gpu_until_ns", "gpu_open_ns"};

void shift_attrs(Source& source, Nanos by) {
  if (source.kind != SourceKind::kProcess && source.kind != SourceKind::kGpuProcess) return;
  for (const char* name : kTimes) {
    const auto found = source.attrs.find(name);
    if (found == source.attrs.end()) continue;
    if (const auto at = parse_number<Nanos>(found->second))
      found->second = fmt::format("{}", std::clamp(*at, kEarliest, kLatest) + by);
  }
}

void shift_rows(Track& track, Nanos by) {
  for (Nanos& at : track.at) at += by;
  for (ListRow& row : track.lists) row.at += by;
}

void shift_event(Event& event, Nanos by) {
  event.at += by;
  if (event.end) *event.end += by;
}

// Puts parts behind one another.
class Merger {
 public:
  explicit Merger(std::span<const Recording> parts) {
    std::vector<RecordingMeta> metas;
    for (const Recording& part : parts) metas.push_back(part.meta);
    names_ = part_names(metas);
    one_machine_ = of_one_machine(names_);
    whole_.meta = meta_of_all(metas);
  }

  void add(Recording part) {
    const PartName& name = names_[number_++];
    if (goes_on(part.meta)) part.meta.stop_reason = "recovered";  // what came after this copy is not in it
    by_ = to_unix_time(part.meta);
    base_ = static_cast<SourceId>(whole_.sources.size()) + 1;
    add_lists(part);
    whole_.sources.push_back({SourceKind::kPart, name.part, kNoSource, facts_of_part(part.meta, part.losses)});
    whole_.tracks.emplace_back();
    for (std::size_t i = 0; i < part.sources.size(); ++i) add_source(name, part.sources[i], part.tracks[i]);
    for (Event& event : part.events) {
      shift_event(event, by_);
      event.source = place(event.source);
      whole_.events.push_back(std::move(event));
    }
    for (Loss& loss : part.losses) {
      loss.detail = loss.detail.empty() ? name.part : name.part + ": " + loss.detail;
      for (LossPlace& where : loss.places) where.begin += by_, where.end += by_, where.source = place(where.source);
      count_loss(whole_.losses, loss);
    }
  }

  Recording take() {
    std::stable_sort(whole_.events.begin(), whole_.events.end(),
                     [](const auto& a, const auto& b) { return a.at < b.at; });
    return std::move(whole_);
  }

 private:
  [[nodiscard]] SourceId place(SourceId source) const { return source == kNoSource ? base_ - 1 : base_ + source; }

  void add_source(const PartName& name, Source& source, Track& track) {
    if (source.kind == SourceKind::kGpu) {
      source.attrs["uuid"] = source.key;
      if (!one_machine_) source.attrs["host"] = name.machine;
    }
    source.key = name.part + "/" + source.key;
    if (source.parent != kNoSource) source.parent += base_;
    shift_attrs(source, by_);
    shift_rows(track, by_);
    for (ListRow& row : track.lists) row.list = lists_[row.list];
    std::erase_if(track.lists, [](const ListRow& row) { return row.list == kNoList; });
    whole_.sources.push_back(std::move(source));
    whole_.tracks.push_back(std::move(track));
  }

  // The dictionary is bounded: rows of lists that find no room in it are lost, and counted.
  void add_lists(Recording& part) {
    std::vector<TextId> texts, list;
    lists_.clear();
    for (const std::string& text : part.texts) {
      texts.push_back(dictionary_.text(text));
      if (texts.back() == whole_.texts.size()) whole_.texts.push_back(text);
    }
    for (const auto& known : part.lists) {
      list.clear();
      for (const TextId id : known) list.push_back(texts[id]);
      lists_.push_back(dictionary_.list(list));
      if (lists_.back() == whole_.lists.size()) whole_.lists.push_back(list);
    }
    std::int64_t lost = 0;
    for (const Track& track : part.tracks)
      lost += std::count_if(track.lists.begin(), track.lists.end(),
                            [&](const ListRow& row) { return lists_[row.list] == kNoList; });
    if (lost > 0)
      count_loss(part.losses,
                 make_loss(LossKind::kMissingRows, lost,
                           "all recordings together have more stacks of different kinds than one can hold"));
  }

  Recording whole_;
  std::vector<PartName> names_;
  bool one_machine_ = false;
  std::size_t number_ = 0;
  Nanos by_ = 0;
  SourceId base_ = 0;          // of the part's first source
  std::vector<ListId> lists_;  // by that of the part
  Dictionary dictionary_;
};

// Takes one part out again.
class Splitter {
 public:
  Splitter(const Recording& whole, SourceId part) : whole_(whole), part_(part), end_(part + 1) {
    const Source& source = whole.sources[static_cast<std::size_t>(part)];
    while (static_cast<std::size_t>(end_) < whole.sources.size() &&
           whole.sources[static_cast<std::size_t>(end_)].kind != SourceKind::kPart)
      ++end_;
    out_.meta = meta_of_part(source);
    out_.losses = losses_of_part(source);
    name_ = source.key + "/";
    by_ = -to_unix_time(out_.meta);
  }

  Recording take() {
    for (SourceId id = part_ + 1; id < end_; ++id) add_source(id);
    for (const Event& event : whole_.events) {
      if (event.source < part_ || event.source >= end_) continue;
      out_.events.push_back(event);
      shift_event(out_.events.back(), by_);
      out_.events.back().source = event.source == part_ ? kNoSource : event.source - part_ - 1;
    }
    const auto sources = static_cast<SourceId>(out_.sources.size());
    for (Loss& loss : out_.losses)
      std::erase_if(loss.places,
                    [&](const LossPlace& place) { return place.source < kNoSource || place.source >= sources; });
    keep_in_bounds(out_);
    return std::move(out_);
  }

 private:
  void add_source(SourceId id) {
    Source source = whole_.sources[static_cast<std::size_t>(id)];
    if (source.key.starts_with(name_)) source.key.erase(0, name_.size());
    if (source.parent != kNoSource)
      source.parent = source.parent > part_ && source.parent < end_ ? source.parent - part_ - 1 : kNoSource;
    if (source.kind == SourceKind::kGpu) source.attrs.erase("uuid"), source.attrs.erase("host");
    shift_attrs(source, by_);
    Track track = track_of(whole_, id);
    shift_rows(track, by_);
    for (ListRow& row : track.lists) row.list = list(row.list);
    out_.sources.push_back(std::move(source));
    out_.tracks.push_back(std::move(track));
  }

  ListId list(ListId known) {
    const auto [entry, is_new] = lists_.emplace(known, static_cast<ListId>(out_.lists.size()));
    if (!is_new) return entry->second;
    std::vector<TextId> texts;
    for (const TextId text : whole_.lists[known]) {
      const auto [at, fresh] = texts_.emplace(text, static_cast<TextId>(out_.texts.size()));
      if (fresh) out_.texts.push_back(whole_.texts[text]);
      texts.push_back(at->second);
    }
    out_.lists.push_back(std::move(texts));
    return entry->second;
  }

  const Recording& whole_;
  SourceId part_, end_;
  Recording out_;
  std::string name_;  // before its keys
  Nanos by_ = 0;
  std::map<ListId, ListId> lists_;
  std::map<TextId, TextId> texts_;
};

}  // namespace

Recording merged(std::vector<Recording> parts) {
  Merger merger(parts);
  for (Recording& part : parts) merger.add(std::exchange(part, {}));
  return merger.take();
}

Recording part_of(const Recording& recording, std::size_t part) {
  return Splitter(recording, recording.all(SourceKind::kPart)[part]).take();
}

}  // namespace headroom
