// SPDX-License-Identifier: Apache-2.0
#include "analyze/loop_roles.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/strings.h"

namespace headroom {

namespace {

constexpr Nanos kClose = kSecond;  // what is seen again within that may be a part of the same

// A look at a process at work, the how many-th of all of them.
struct Look {
  Nanos at = 0;
  std::size_t number = 0;
};
using Looks = std::vector<Look>;  // those at one place

// The places at which the GPU may be idle, numbered.
struct OpenPlaces {
  std::vector<std::string> names;
  std::vector<std::int32_t> of_kind;  // by kind of stack; -1: none

  explicit OpenPlaces(const StackView& stacks) {
    std::map<std::string_view, std::int32_t> numbers;
    for (const stacks::StackKind& kind : stacks.kinds) {
      const bool open = kind.busy <= stacks::Busy::kUnknown || kind.busy == stacks::Busy::kLaunches;
      if (!open || kind.where.empty()) {
        of_kind.push_back(-1);
        continue;
      }
      const auto [known, fresh] = numbers.try_emplace(kind.where, static_cast<std::int32_t>(names.size()));
      if (fresh) names.push_back(kind.where);
      of_kind.push_back(known->second);
    }
  }
};

// The devices on which each process was seen, but for processes of which a look may be at another thread.
std::map<SourceId, std::vector<const DeviceTime*>> devices_of_owners(const WatchedJob& watched) {
  std::map<SourceId, std::vector<const DeviceTime*>> all;
  for (const DeviceTime& device : watched.devices)
    for (const auto& [pid, process] : owners_on(device, watched))
      if (!watched.stacks.looks.at(process).has_beside()) all[process].push_back(&device);
  return all;
}

// Parts of the looks at this process, in order.
using Spans = std::vector<std::span<const ListRow>>;
Spans looks_at_work(SourceId process, const std::vector<const DeviceTime*>& devices, const WatchedJob& watched) {
  Spans all;
  for (const DeviceTime* device : devices)
    visit_work(*device, watched, [&](SourceId owner, const Slice&, std::span<const ListRow> looks) {
      if (owner == process && !looks.empty()) all.push_back(looks);
    });
  if (devices.size() < 2) return all;
  std::sort(all.begin(), all.end(), [](const auto& x, const auto& y) { return x.data() < y.data(); });
  Spans each_once;
  for (const std::span<const ListRow> looks : all) {
    const ListRow* end = looks.data() + looks.size();
    const ListRow* begin = each_once.empty() ? looks.data() : std::max(looks.data(), &each_once.back().back() + 1);
    if (begin < end) each_once.emplace_back(begin, end);
  }
  return each_once;
}

// The epoch that a row tells: its name and, where it is told by itself, which time that is.
struct Epoch {
  TextId name = kNoText;
  std::int32_t nth = 0;
};
std::optional<Epoch> epoch_of(const Recording& recording, const ListRow& row, const std::optional<Epoch>& last) {
  if (row.list == kNoList) return std::nullopt;
  const auto& names = recording.lists[row.list];
  const auto epoch = std::find_if(names.begin(), names.end(),
                                  [&](TextId text) { return lower(recording.texts[text]).starts_with("epoch"); });
  if (epoch == names.end()) return std::nullopt;
  const bool within = std::next(epoch) != names.end();  // a part of it
  return Epoch{*epoch, !within ? row.value : last && last->name == *epoch ? last->nth : 0};
}

// When the job began another epoch, by its own words: what it says after something else is another one, too.
std::vector<Nanos> epochs_of(const Recording& recording) {
  std::vector<Nanos> begins;
  for (const SourceId id : recording.all(SourceKind::kMarks)) {
    std::optional<Epoch> last;
    for (const ListRow& row : recording.tracks[static_cast<std::size_t>(id)].lists) {
      const std::optional<Epoch> now = epoch_of(recording, row, last);
      if (now && (!last || last->name != now->name || last->nth != now->nth)) begins.push_back(row.at);
      last = now;
    }
  }
  std::sort(begins.begin(), begins.end());
  return begins;
}

struct Stretch {
  Nanos begin = 0, end = 0;
  std::size_t looks = 0, others = 0;  // at it, and at other code meanwhile
};

// Stretches in which it is seen again and again; one of a few looks among many is chance.
std::vector<Stretch> stretches_of(const Looks& at_it) {
  constexpr std::size_t kFew = 20;  // of the looks at it, a part
  std::vector<Stretch> all;
  for (std::size_t i = 0; i < at_it.size(); ++i) {
    const Nanos at = at_it[i].at;
    if (all.empty() || at - all.back().end > kClose) {
      all.push_back({at, at, 1, 0});
      continue;
    }
    Stretch& last = all.back();
    last.others += at_it[i].number - at_it[i - 1].number - 1;
    last.end = at;
    ++last.looks;
  }
  std::erase_if(all, [&](const Stretch& one) { return kFew * one.looks < at_it.size(); });
  return all;
}

// Whether it is mostly at that in nearly all of its time there: what is seen now and then, as a small part of each
// step, is missed by many looks one after the other by chance.
bool stays(const std::vector<Stretch>& stretches) {
  constexpr std::size_t kFewest = 3;
  constexpr double kNearlyAll = 0.8;
  std::size_t in_stays = 0, all = 0;
  for (const Stretch& one : stretches) {
    all += one.looks;
    if (one.looks >= kFewest && one.others <= one.looks) in_stays += one.looks;
  }
  return static_cast<double>(in_stays) >= kNearlyAll * static_cast<double>(all);
}

// How often one after another it is seen, and for how long at a time at most.
struct Runs {
  std::size_t count = 0;
  Nanos longest = 0;
};
Runs runs_of(const Looks& at_it) {
  Runs runs;
  Nanos begin = 0;
  for (std::size_t i = 0; i < at_it.size(); ++i) {
    const Nanos at = at_it[i].at;
    if (i == 0 || at_it[i].number != at_it[i - 1].number + 1) begin = at, ++runs.count;
    runs.longest = std::max(runs.longest, at - begin);
  }
  return runs;
}

// Whether nearly each of these begins, but for the first, lies in or beside a stretch, and hardly a stretch beside
// none.
bool between_epochs(const std::vector<Stretch>& stretches, const std::vector<Nanos>& epochs, Nanos from, Nanos to) {
  constexpr double kNearlyAll = 0.8;
  const auto beside = [](const Stretch& one, Nanos at) { return one.begin - kClose <= at && at <= one.end + kClose; };
  std::size_t begins = 0, told = 0;
  for (const Nanos at : epochs) {
    if (at <= from + kClose || at >= to) continue;
    ++begins;
    told += std::any_of(stretches.begin(), stretches.end(), [&](const Stretch& s) { return beside(s, at); }) ? 1U : 0U;
  }
  const auto alone = std::count_if(stretches.begin(), stretches.end(), [&](const Stretch& one) {
    return std::none_of(epochs.begin(), epochs.end(), [&](Nanos at) { return beside(one, at); });
  });
  return begins > 0 && static_cast<double>(told) >= kNearlyAll * static_cast<double>(begins) && alone <= 1;
}

// All looks at a process at work.
struct Watched {
  Nanos from = 0, to = 0;  // the first and the last
  std::size_t looks = 0;
};

Recurs recurs_at(const Looks& at_it, const Watched& watched, const std::vector<Nanos>& epochs) {
  constexpr Nanos kShortest = 5 * kSecond, kApart = kSecond / 4;  // of the looks: all, and one from the next on average
  constexpr std::size_t kFewestRuns = 10;
  constexpr double kAll = 0.9, kPart = 0.6;
  const Nanos from = watched.from, to = watched.to, all = to - from;
  if (all < kShortest || all / static_cast<Nanos>(watched.looks) > kApart) return Recurs::kUnknown;
  const std::vector<Stretch> stretches = stretches_of(at_it);
  Nanos covered = 0;
  for (const Stretch& one : stretches) covered += one.end - one.begin;
  const Runs runs = runs_of(at_it);
  const double share = static_cast<double>(covered) / static_cast<double>(all);
  if (share >= kAll && runs.count >= kFewestRuns && runs.longest <= kClose) return Recurs::kThroughout;
  if (share > kPart || !stays(stretches)) return Recurs::kUnknown;
  if (stretches.size() > 1) return between_epochs(stretches, epochs, from, to) ? Recurs::kEachEpoch : Recurs::kAtTimes;
  if (stretches.size() != 1 || stretches[0].begin < from + kClose || stretches[0].end > to - kClose)
    return Recurs::kUnknown;
  return Recurs::kOnce;
}

// What nearly all looks at a place have on their stacks.
class Parts {
 public:
  explicit Parts(const Recording& recording) : recording_(recording) {}

  stacks::NamedPart of(const std::map<ListId, std::size_t>& looks) {
    constexpr double kNearlyAll = 0.9;
    std::map<std::pair<LoopPart, std::string>, double> found;
    double all = 0;
    for (const auto& [list, count] : looks) {
      const stacks::NamedPart& part = of(list);
      found[{part.part, part.by}] += static_cast<double>(count), all += static_cast<double>(count);
    }
    for (const auto& [part, count] : found)
      if (count >= kNearlyAll * all) return {part.first, part.second};
    return {};
  }

 private:
  const stacks::NamedPart& of(ListId list) {
    const auto [known, fresh] = known_.try_emplace(list);
    if (!fresh || list >= recording_.lists.size()) return known->second;  // of several threads nothing is told
    std::vector<stacks::Frame> frames;
    for (const TextId text : recording_.lists[list]) frames.push_back(stacks::frame_of(recording_.texts[text]));
    return known->second = stacks::named_part(frames);
  }

  const Recording& recording_;
  std::map<ListId, stacks::NamedPart> known_;
};

// The looks of a process, by place.
struct ByPlace {
  Watched watched;
  std::vector<Looks> looks;
  std::vector<std::map<ListId, std::size_t>> lists;  // with how many looks at each
};
ByPlace by_place(const Spans& spans, const OpenPlaces& places, const StackView& stacks) {
  ByPlace by{{}, std::vector<Looks>(places.names.size()), {}};
  by.lists.resize(places.names.size());
  std::vector<std::size_t> of_list(stacks.kind_of_list.size());
  for (const std::span<const ListRow> span : spans)
    for (const ListRow& look : span) ++of_list[look.list];
  std::vector<std::size_t> counts(places.names.size());
  for (std::size_t list = 0; list < of_list.size(); ++list) {
    const std::int32_t place = of_list[list] > 0 ? places.of_kind[stacks.kind_of_list[list]] : -1;
    if (place < 0) continue;
    counts[static_cast<std::size_t>(place)] += of_list[list];
    by.lists[static_cast<std::size_t>(place)].emplace(static_cast<ListId>(list), of_list[list]);
  }
  for (std::size_t place = 0; place < counts.size(); ++place) by.looks[place].reserve(counts[place]);
  if (!spans.empty()) by.watched.from = spans.front().front().at, by.watched.to = spans.back().back().at;
  for (const std::span<const ListRow> span : spans)
    for (const ListRow& look : span) {
      const std::int32_t place = places.of_kind[stacks.number_of(look)];
      if (place >= 0) by.looks[static_cast<std::size_t>(place)].push_back({look.at, by.watched.looks});
      ++by.watched.looks;
    }
  return by;
}

}  // namespace

std::map<std::string, LoopRole> loop_roles(const Recording& recording, const WatchedJob& watched) {
  std::map<std::string, LoopRole> roles;
  if (watched.job.batch.present) return roles;
  const std::vector<Nanos> epochs = epochs_of(recording);
  const OpenPlaces places(watched.stacks);
  Parts parts(recording);
  for (const auto& [process, its] : devices_of_owners(watched)) {
    const ByPlace by = by_place(looks_at_work(process, its, watched), places, watched.stacks);
    for (std::size_t place = 0; place < places.names.size(); ++place) {
      constexpr std::size_t kFewest = 5;  // looks: fewer are chance
      if (by.looks[place].size() < kFewest) continue;
      const stacks::NamedPart part = parts.of(by.lists[place]);
      const LoopRole role{part.part, recurs_at(by.looks[place], by.watched, epochs), part.by};
      const auto [known, fresh] = roles.try_emplace(places.names[place], role);
      if (!fresh && known->second != role) known->second = {};
    }
  }
  std::erase_if(roles, [](const auto& one) { return !one.second.known(); });
  return roles;
}

}  // namespace headroom
