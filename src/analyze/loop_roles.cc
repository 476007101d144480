// SPDX-License-Identifier: Apache-2.0
#include "analyze/loop_roles.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "analyze/looks_at_work.h"
#include "base/strings.h"

namespace headroom {

namespace {

constexpr Nanos kClose = kSecond;  // what is seen again within that may be a part of the same

// A look at a process at work: at which place, if that may be idle time of its GPU.
struct Look {
  Nanos at = 0;
  const std::string* place = nullptr;
  ListId list = kNoList;
};
using Looks = std::vector<Look>;

std::map<SourceId, Looks> looks_at_work(const StackView& stacks, const JobView& job,
                                        const std::vector<DeviceTime>& devices) {
  std::map<SourceId, Looks> all;
  for (const DeviceTime& device : devices)
    visit_work(device, stacks, job, [&](SourceId process, const Slice&, std::span<const ListRow> looks) {
      if (stacks.looks.at(process).has_beside()) return;
      for (const ListRow& look : looks) {
        const stacks::StackKind& kind = stacks.kind_of(look);
        const bool open = kind.busy <= stacks::Busy::kUnknown || kind.busy == stacks::Busy::kLaunches;
        all[process].push_back({look.at, open ? &kind.where : nullptr, look.list});
      }
    });
  for (auto& [process, looks] : all) {  // of each of its devices
    std::sort(looks.begin(), looks.end(), [](const Look& x, const Look& y) { return x.at < y.at; });
    const auto same = [](const Look& x, const Look& y) { return x.at == y.at; };
    looks.erase(std::unique(looks.begin(), looks.end(), same), looks.end());
  }
  return all;
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
std::vector<Stretch> stretches_of(const Looks& looks, const std::string& place) {
  constexpr std::size_t kFew = 20;  // of the looks at it, a part
  std::vector<Stretch> all;
  std::size_t seen = 0, others = 0;
  for (const Look& look : looks) {
    if (!look.place || *look.place != place) {
      ++others;
      continue;
    }
    ++seen;
    if (all.empty() || look.at - all.back().end > kClose) all.push_back({look.at, look.at, 0, 0});
    Stretch& last = all.back();
    if (last.looks > 0) last.others += others;
    last.end = look.at;
    ++last.looks;
    others = 0;
  }
  std::erase_if(all, [&](const Stretch& one) { return kFew * one.looks < seen; });
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
Runs runs_of(const Looks& looks, const std::string& place) {
  Runs runs;
  Nanos begin = 0;
  bool there = false;
  for (const Look& look : looks) {
    const bool now = look.place && *look.place == place;
    if (now && !there) begin = look.at, ++runs.count;
    if (now) runs.longest = std::max(runs.longest, look.at - begin);
    there = now;
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

Recurs recurs_at(const Looks& looks, const std::string& place, const std::vector<Nanos>& epochs) {
  constexpr Nanos kShortest = 5 * kSecond, kApart = kSecond / 4;  // of the looks: all, and one from the next on average
  constexpr std::size_t kFewestRuns = 10;
  constexpr double kAll = 0.9, kPart = 0.6;
  const Nanos from = looks.front().at, to = looks.back().at, all = to - from;
  if (all < kShortest || all / static_cast<Nanos>(looks.size()) > kApart) return Recurs::kUnknown;
  const std::vector<Stretch> stretches = stretches_of(looks, place);
  Nanos covered = 0;
  for (const Stretch& one : stretches) covered += one.end - one.begin;
  const Runs runs = runs_of(looks, place);
  const double share = static_cast<double>(covered) / static_cast<double>(all);
  if (share >= kAll && runs.count >= kFewestRuns && runs.longest <= kClose) return Recurs::kThroughout;
  if (share > kPart || !stays(stretches)) return Recurs::kUnknown;
  if (stretches.size() > 1) return between_epochs(stretches, epochs, from, to) ? Recurs::kEachEpoch : Recurs::kAtTimes;
  if (stretches.size() != 1 || stretches[0].begin < from + kClose || stretches[0].end > to - kClose)
    return Recurs::kUnknown;
  return Recurs::kOnce;
}

// What nearly all looks at the place have on their stacks.
class Parts {
 public:
  explicit Parts(const Recording& recording) : recording_(recording) {}

  stacks::NamedPart of(const Looks& looks, const std::string& place) {
    constexpr double kNearlyAll = 0.9;
    std::map<std::pair<LoopPart, std::string>, double> found;
    double all = 0;
    for (const Look& look : looks) {
      if (!look.place || *look.place != place) continue;
      const stacks::NamedPart& part = of(look.list);
      found[{part.part, part.by}] += 1, all += 1;
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

}  // namespace

std::map<std::string, LoopRole> loop_roles(const Recording& recording, const StackView& stacks, const JobView& job,
                                           const std::vector<DeviceTime>& devices) {
  std::map<std::string, LoopRole> roles;
  if (job.batch.present) return roles;
  const std::vector<Nanos> epochs = epochs_of(recording);
  Parts parts(recording);
  for (const auto& [process, looks] : looks_at_work(stacks, job, devices)) {
    std::map<std::string, std::size_t> places;
    for (const Look& look : looks)
      if (look.place && !look.place->empty()) ++places[*look.place];
    for (const auto& [place, count] : places) {
      constexpr std::size_t kFewest = 5;  // looks: fewer are chance
      if (count < kFewest) continue;
      const stacks::NamedPart part = parts.of(looks, place);
      const LoopRole role{part.part, recurs_at(looks, place, epochs), part.by};
      const auto [known, fresh] = roles.try_emplace(place, role);
      if (!fresh && known->second != role) known->second = {};
    }
  }
  std::erase_if(roles, [](const auto& one) { return !one.second.known(); });
  return roles;
}

}  // namespace headroom
