// SPDX-License-Identifier: Apache-2.0
#include "model/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/fnv.h"
#include "base/human.h"
#include "base/strings.h"
#include "base/visible.h"
#include "model/bounds.h"
#include "model/dictionary.h"
#include "model/ledger.h"
#include "model/losses.h"
#include "model/part_facts.h"

namespace headroom {

namespace {

constexpr std::string_view kOrigin = "merge", kStopReason = "merged";

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

// Tiers that one part has and another has not are there, and missing: of the other it is said.
void add_tiers(std::span<const RecordingMeta> metas, RecordingMeta& all) {
  const std::vector<PartName> names = part_names(metas);
  for (const char letter : Tiers::kLetters) {
    std::size_t without = 0, so = 0;  // parts; those that give the first reason
    std::size_t first = 0;
    const std::string* why = nullptr;
    for (std::size_t i = 0; i < metas.size(); ++i) {
      if (metas[i].tiers.find(letter) != std::string::npos) continue;
      ++without;
      for (const MissingTier& missing : metas[i].missing_tiers) {
        if (missing.tier != letter) continue;
        if (why == nullptr) why = &missing.why, first = i;
        if (missing.why == *why) ++so;
      }
    }
    if (without < metas.size()) all.tiers += letter;
    if (why == nullptr) continue;
    const std::string whose = so >= metas.size() ? ""
                                                 : fmt::format("of {}{}: ", names[first].part,
                                                               so > 1 ? fmt::format(" and {} more", so - 1) : "");
    all.missing_tiers.push_back({letter, whose + *why});
  }
}

template <class Field>
bool same_in_all(std::span<const RecordingMeta> metas, const Field& field) {
  return std::all_of(metas.begin(), metas.end(), [&](const auto& meta) { return field(meta) == field(metas.front()); });
}

}  // namespace

std::vector<PartName> part_names(std::span<const RecordingMeta> metas) {
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> machines;  // by host: (boot, its name)
  std::map<std::string, std::size_t> parts;                                          // by machine: how many
  std::vector<PartName> names;
  for (std::size_t i = 0; i < metas.size(); ++i) {
    const std::string host = metas[i].host.empty() ? fmt::format("recording {}", i + 1) : metas[i].host;
    auto& known = machines[host];
    auto found =
        std::find_if(known.begin(), known.end(), [&](const auto& one) { return one.first == metas[i].boot_id; });
    if (found == known.end())
      found = known.insert(found,
                           {metas[i].boot_id, known.empty() ? host : fmt::format("{} ({})", host, known.size() + 1)});
    names.push_back({found->second, ""});
    ++parts[names.back().machine];
  }
  std::map<std::string, std::size_t> numbers;
  for (PartName& name : names)
    name.part = parts[name.machine] == 1 ? name.machine : fmt::format("{}:{}", name.machine, ++numbers[name.machine]);
  return names;
}

bool of_one_machine(std::span<const PartName> names) {
  return std::all_of(names.begin(), names.end(),
                     [&](const PartName& name) { return name.machine == names[0].machine; });
}

RecordingMeta meta_of_all(std::span<const RecordingMeta> metas) {
  RecordingMeta all;
  all.origin = kOrigin;
  all.stop_reason = kStopReason;
  if (metas.empty()) return all;
  std::string ids;
  all.start = all.end = metas.front().start_realtime;
  for (const RecordingMeta& meta : metas) {
    ids += meta.id + "\n";
    all.start = std::min(all.start, meta.start_realtime);
    all.end = std::max(all.end, meta.end + to_unix_time(meta));
    all.interval = std::max(all.interval, meta.interval);
    if (meta.exit_code.value_or(0) != 0 && all.exit_code.value_or(0) == 0) all.exit_code = meta.exit_code;
  }
  all.id = fmt::format("{:016x}", fnv1a(ids));
  all.start_realtime = all.start;
  const RecordingMeta& first = metas.front();
  if (!all.exit_code && same_in_all(metas, [](const auto& meta) { return meta.exit_code; }))
    all.exit_code = first.exit_code;
  if (same_in_all(metas, [](const auto& meta) { return meta.host; })) all.host = first.host;
  if (same_in_all(metas, [](const auto& meta) { return meta.boot_id; })) all.boot_id = first.boot_id;
  if (same_in_all(metas, [](const auto& meta) { return meta.writer; })) all.writer = first.writer;
  if (same_in_all(metas, [](const auto& meta) { return meta.cwd; })) all.cwd = first.cwd;
  if (same_in_all(metas, [](const auto& meta) { return meta.command; })) all.command = first.command;
  for (const auto& [name, value] : first.extra)
    if (same_in_all(metas, [&, key = name](const auto& meta) {
          const auto found = meta.extra.find(key);
          return found == meta.extra.end() ? std::string() : found->second;
        }))
      all.extra[name] = value;
  add_tiers(metas, all);
  return all;
}

std::string gpu_identity(const RecordingMeta& meta, std::string_view uuid) {
  if (!meta.boot_id.empty()) return fmt::format("{}/{}", meta.boot_id, uuid);
  if (!meta.host.empty()) return fmt::format("{}/{}", meta.host, uuid);
  return uuid.starts_with("GPU-") ? std::string(uuid) : "";
}

std::vector<PartGpu> gpus_of_part(const Recording& part) {
  std::vector<PartGpu> gpus;
  for (const SourceId id : part.all(SourceKind::kGpu)) {
    const Device device = device_of(part.sources[static_cast<std::size_t>(id)]);
    const Track& track = track_of(part, id);
    if (track.at.empty() || device.given == false) continue;
    const Nanos by = to_unix_time(part.meta);
    gpus.push_back({gpu_identity(part.meta, device.uuid), device.index, track.at.front() + by, track.at.back() + by});
  }
  return gpus;
}

namespace {

Result<void> has_each_once(std::span<const PartToJoin> parts) {
  std::map<std::string, std::string> ids;
  for (const PartToJoin& part : parts) {
    if (part.meta.origin == kOrigin)
      return fail(Errc::kInvalidInput, fmt::format("{} was made of several recordings already", part.name),
                  "give the recordings that it was made of");
    if (part.meta.start_realtime <= 0 || part.meta.start_realtime > kLatest)
      return fail(Errc::kInvalidInput,
                  fmt::format("{} has no date: when it was beside the others is not known", part.name),
                  "explain it alone, or import it with --start-date");
    const auto [known, is_new] = ids.emplace(part.meta.id, part.name);
    if (!part.meta.id.empty() && !is_new)
      return fail(
          Errc::kInvalidInput,
          fmt::format("{} and {} are one recording, by its id: its time would count twice", known->second, part.name),
          "leave one of them out");
  }
  return {};
}

}  // namespace

Result<void> can_be_joined(std::span<const PartToJoin> parts) {
  HR_TRYV(has_each_once(parts));
  struct Seen {
    PartGpu gpu;
    const PartToJoin* part = nullptr;
  };
  std::vector<Seen> all;
  for (const PartToJoin& part : parts)
    for (const PartGpu& gpu : part.gpus)
      if (!gpu.identity.empty()) all.push_back({gpu, &part});
  std::sort(all.begin(), all.end(), [](const Seen& a, const Seen& b) {
    return std::pair(a.gpu.identity, a.gpu.begin) < std::pair(b.gpu.identity, b.gpu.begin);
  });
  for (std::size_t i = 1; i < all.size(); ++i) {
    const Seen &one = all[i - 1], &next = all[i];
    if (one.gpu.identity != next.gpu.identity || next.gpu.begin >= one.gpu.end) continue;
    return fail(Errc::kInvalidInput,
                fmt::format("{} and {} both have GPU {}{} from {} to {}: its time would count twice", one.part->name,
                            next.part->name, next.gpu.index,
                            next.part->meta.host.empty() ? "" : " of " + visible(next.part->meta.host),
                            clock_time(next.gpu.begin), clock_time(std::min(one.gpu.end, next.gpu.end))),
                "leave one of them out; of run and record beside it, run knows the job");
  }
  return {};
}

std::string gpus_on_machines(std::span<const Device> devices) {
  constexpr std::size_t kMostHosts = 2, kMostNamed = 8;
  std::map<std::string, std::vector<std::string>> hosts;
  for (const Device& device : devices) hosts[device.host].push_back(fmt::format("{}", device.index));
  if (hosts.size() > kMostHosts || devices.size() > kMostNamed)
    return fmt::format("{} GPUs on {}", devices.size(),
                       hosts.size() == 1 ? hosts.begin()->first : count_of(hosts.size(), "machine"));
  std::vector<std::string> words;
  for (const auto& [host, indices] : hosts)
    words.push_back(fmt::format("{} {} {}", host, indices.size() == 1 ? "GPU" : "GPUs", join(indices, ", ")));
  return join(words, " and ");
}

bool has_parts(const Recording& recording) {
  return !recording.sources.empty() && recording.sources.front().kind == SourceKind::kPart;
}

Recording merged(std::vector<Recording> parts) {
  Merger merger(parts);
  for (Recording& part : parts) merger.add(std::exchange(part, {}));
  return merger.take();
}

std::vector<RecordingMeta> metas_of_parts(const Recording& recording) {
  std::vector<RecordingMeta> metas;
  for (const SourceId id : recording.all(SourceKind::kPart))
    metas.push_back(meta_of_part(recording.sources[static_cast<std::size_t>(id)]));
  return metas;
}

std::vector<std::size_t> parts_of_sources(const Recording& recording) {
  std::vector<std::size_t> parts;
  std::size_t now = 0, seen = 0;
  for (const Source& source : recording.sources) {
    if (source.kind == SourceKind::kPart) now = seen++;
    parts.push_back(now);
  }
  return parts;
}

namespace {

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

Recording part_of(const Recording& recording, std::size_t part) {
  return Splitter(recording, recording.all(SourceKind::kPart)[part]).take();
}

}  // namespace headroom
