// SPDX-License-Identifier: Apache-2.0
#include "analyze/named_phases.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <limits>
#include <set>

#include "analyze/stats.h"
#include "analyze/utilisation.h"
#include "base/median.h"
#include "base/strings.h"

namespace headroom {

namespace {

using stacks::Family;

constexpr std::array<std::string_view, 5> kWays{"marks", "nvtx", "trace", "output", "table"};  // in order of trust
constexpr std::size_t kMostPhases = 64;
constexpr std::int64_t kMostTimes = 1'000'000'000;  // that a phase begins: a damaged file may say anything
constexpr Nanos kApart = 500 * kMillisecond;        // at most, two looks at stacks that belong together
constexpr Nanos kWidestReading = 3600 * kSecond;    // a file may claim anything
constexpr std::string_view kOthers = "other phases";

// Digits become N: "epoch 3" and "epoch 4" are one phase.
std::string without_numbers(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit)
      plain += c;
    else if (plain.empty() || plain.back() != 'N')
      plain += 'N';
  }
  return plain;
}

// Stretches by name, before the names have numbers.
struct TextStretch {
  Window time;
  std::string name;
  std::int64_t nth = 0;       // NamedStretch::nth
  Nanos lead = 0, trail = 0;  // NamedStretch::lead, trail
};

struct TextTrack {
  std::string via;
  std::vector<TextStretch> stretches;
  [[nodiscard]] Nanos length() const {
    Nanos sum = 0;
    for (const TextStretch& stretch : stretches) sum += stretch.time.length();
    return sum;
  }
};

TextTrack track_of_marks(const Recording& recording, SourceId id) {
  TextTrack track{attr(recording.sources[static_cast<std::size_t>(id)], "via"), {}};
  const std::vector<ListRow>& rows = recording.tracks[static_cast<std::size_t>(id)].lists;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (rows[row].list == kNoList || recording.lists[rows[row].list].empty()) continue;
    const Nanos end = row + 1 < rows.size() ? rows[row + 1].at : recording.meta.end;
    if (end <= rows[row].at) continue;
    std::vector<std::string> names;
    for (const TextId text : recording.lists[rows[row].list]) names.push_back(recording.texts[text]);
    const std::int64_t nth = rows[row].value;
    track.stretches.push_back({{rows[row].at, end}, join(names, "/"), nth > 0 && nth <= kMostTimes ? nth : 0});
  }
  return track;
}

// What a thread said in one way; of several threads, the one that was in phases for longest. Of kNoSource: what a log
// of readings said of whoever was there.
std::map<SourceId, TextTrack> tracks_of_marks(const Recording& recording) {
  std::map<SourceId, TextTrack> best;
  const auto trust = [](const TextTrack& track) { return std::find(kWays.begin(), kWays.end(), track.via); };
  for (const SourceId id : recording.all(SourceKind::kMarks)) {
    const SourceId process = recording.sources[static_cast<std::size_t>(id)].parent;
    TextTrack track = track_of_marks(recording, id);
    const bool of_log = process == kNoSource && track.via == "table";
    if ((process == kNoSource && !of_log) || track.stretches.empty() || trust(track) == kWays.end()) continue;
    const auto [known, fresh] = best.try_emplace(process);
    const bool better = fresh || trust(track) < trust(known->second) ||
                        (trust(track) == trust(known->second) && track.length() > known->second.length());
    if (better) known->second = std::move(track);
  }
  return best;
}

std::string_view phase_of(Family family) {
  switch (family) {
    case Family::kEvaluation:
      return "validation";
    case Family::kCheckpoint:
      return "checkpoint";
    case Family::kImport:
      return "imports";
    case Family::kDatasetIndex:
      return "data index";
    case Family::kCompile:
      return "compilation";
    default:
      return "";
  }
}

// A stretch of looks began and ended between two of them: halfway, as likely before as after.
void reach_halfway(TextStretch& stretch, std::span<const ListRow> looks) {
  Window& time = stretch.time;
  const auto before = [](const ListRow& look, Nanos at) { return look.at < at; };
  const auto after = [](Nanos at, const ListRow& look) { return at < look.at; };
  const auto first = std::lower_bound(looks.begin(), looks.end(), time.begin, before);
  const auto next = std::upper_bound(looks.begin(), looks.end(), time.end, after);
  if (first != looks.begin()) stretch.lead = std::min(time.begin - std::prev(first)->at, kApart) / 2;
  if (next != looks.end()) stretch.trail = std::min(next->at - time.end, kApart) / 2;
  time.begin -= stretch.lead;
  time.end += stretch.trail;
}

// Whether a stack is that of a function which calls what another stack is at.
bool calls(const Recording& recording, ListId around, ListId within) {
  if (around >= recording.lists.size() || within >= recording.lists.size()) return false;
  const auto &outer = recording.lists[around], &inner = recording.lists[within];
  return outer.size() < inner.size() && std::equal(outer.begin(), outer.end(), inner.begin());
}

// Runs of looks at one thing, with what the function that called it does between, such as an fsync; a look at something
// else ends them. Of one look alone nobody can tell how long it was at it.
TextTrack track_of_stacks(const Recording& recording, const StackView& view, std::span<const ListRow> looks) {
  TextTrack track{"stacks", {}};
  std::vector<std::string_view> names;  // by kind
  for (const stacks::StackKind& kind : view.kinds) names.push_back(phase_of(kind.within));
  if (std::all_of(names.begin(), names.end(), [](std::string_view name) { return name.empty(); })) return track;
  bool goes_on = false;
  ListId last = kNoList;  // of the looks that have a name
  for (const ListRow& look : looks) {
    const std::string_view name = names[view.number_of(look)];
    auto& all = track.stretches;
    if (name.empty()) {
      goes_on &= calls(recording, look.list, last);
      continue;
    }
    if (goes_on && all.back().name == name && look.at - all.back().time.end <= kApart)
      all.back().time.end = look.at;
    else
      all.push_back({{look.at, look.at}, std::string(name)});
    goes_on = true;
    last = look.list;
  }
  std::erase_if(track.stretches, [](const auto& stretch) { return stretch.time.length() == 0; });
  for (TextStretch& stretch : track.stretches) reach_halfway(stretch, looks);
  return track;
}

// The phase around it; "": none.
std::string phase_around(const std::string& name) {
  const auto slash = name.rfind('/');
  return slash == std::string::npos ? "" : name.substr(0, slash);
}

// Numbers for names, over all tracks.
class Names {
 public:
  explicit Names(const std::vector<TextTrack>& tracks) {
    std::map<std::string, Nanos> lengths;
    for (const TextTrack& track : tracks)
      for (const TextStretch& stretch : track.stretches) {
        lengths[stretch.name] += stretch.time.length();
        for (std::string name = phase_around(stretch.name); !name.empty(); name = phase_around(name))
          lengths.try_emplace(name);
      }
    std::map<std::string, std::size_t> alike;  // but for numbers
    for (const auto& [name, length] : lengths) ++alike[without_numbers(name)];
    std::map<std::string, Nanos> of_shown;
    for (const auto& [name, length] : lengths) {
      const std::string plain = without_numbers(name);
      const std::string& shown = shown_[name] = alike[plain] > 1 ? plain : name;
      of_shown[shown] += length;
    }
    number(of_shown);
  }
  [[nodiscard]] std::int32_t number_of(const std::string& name) const { return numbers_.at(shown_.at(name)); }

  std::vector<std::string> names;

 private:
  // The longest first; those beyond the most are one.
  void number(const std::map<std::string, Nanos>& lengths) {
    std::vector<std::pair<Nanos, std::string>> order;
    for (const auto& [name, length] : lengths) order.emplace_back(-length, name);
    std::sort(order.begin(), order.end());
    for (const auto& [length, name] : order) {
      const bool more = names.size() + 1 >= kMostPhases && order.size() > kMostPhases;
      numbers_[name] = static_cast<std::int32_t>(more ? kMostPhases - 1 : names.size());
      if (names.size() < kMostPhases) names.push_back(more ? std::string(kOthers) : name);
    }
  }

  std::map<std::string, std::string> shown_;
  std::map<std::string, std::int32_t> numbers_;
};

// How fine the readings of utilisation are: those of the driver's ring, else the ticks.
Nanos spacing_of(const Recording& recording) {
  std::vector<Nanos> gaps;
  for (const SourceId id : recording.all(SourceKind::kGpuUtilRing)) {
    const std::vector<Nanos>& at = recording.tracks[static_cast<std::size_t>(id)].at;
    for (std::size_t row = 1; row < at.size(); ++row) gaps.push_back(at[row] - at[row - 1]);
  }
  if (gaps.empty()) return recording.meta.interval;
  return median(std::move(gaps));
}

std::size_t depth_of(const std::string& name) {
  return name.empty() ? 0 : 1 + static_cast<std::size_t>(std::count(name.begin(), name.end(), '/'));
}

// From the deepest on, stretches shorter than that go to the phase around them.
TextTrack coarse(TextTrack track, Nanos shortest) {
  std::size_t deepest = 0;
  for (const TextStretch& stretch : track.stretches) deepest = std::max(deepest, depth_of(stretch.name));
  for (std::size_t depth = deepest; depth > 0; --depth) {
    std::vector<TextStretch> joined;
    for (TextStretch& stretch : track.stretches) {
      auto& [time, name, nth, lead, trail] = stretch;
      if (time.length() < shortest && depth_of(name) == depth) {
        name = phase_around(name);
        nth = 0;
      }
      // What goes to the phase around it is of the time in that phase that goes on beside it.
      if (!joined.empty() && joined.back().name == name && joined.back().time.end == time.begin &&
          (joined.back().nth == nth || joined.back().nth == 0 || nth == 0)) {
        joined.back().time.end = time.end;
        joined.back().nth = std::max(joined.back().nth, nth);
        joined.back().trail = trail;
      } else
        joined.push_back(std::move(stretch));
    }
    track.stretches = std::move(joined);
  }
  std::erase_if(track.stretches, [](const auto& stretch) { return stretch.name.empty(); });
  return track;
}

// "epoch 4" after "epoch 3" is another time in the same phase; of what has no name of its own nobody can tell.
PhaseTrack numbered(const TextTrack& track, const Names& names) {
  PhaseTrack made{track.via, {}};
  struct Seen {
    std::string name;
    std::int64_t nth = 0, times = 0;
  };
  std::map<std::int32_t, Seen> seen;  // of several names that are one phase
  for (const auto& [time, name, nth, lead, trail] : track.stretches) {
    const std::int32_t number = names.number_of(name);
    auto& all = made.stretches;
    const bool goes_on = !all.empty() && all.back().name == number && all.back().end == time.begin;
    if (goes_on && names.names[static_cast<std::size_t>(number)] == kOthers)
      all.back().end = time.end, all.back().trail = trail;
    else
      all.push_back({time.begin, time.end, number, nth, lead, trail});
    if (nth == 0 || names.names[static_cast<std::size_t>(number)] == name) continue;
    Seen& before = seen[number];
    before.times += before.name != name ? 1 : std::max<std::int64_t>(0, nth - before.nth);
    before.name = name;
    before.nth = nth;
    all.back().nth = before.times;
  }
  return made;
}

}  // namespace

namespace {

// By pid, when the last one of the others on a device had ended, of those that began after that.
std::map<std::int64_t, Nanos> after_another(const Recording& recording, const JobView& job) {
  std::vector<Nanos> ends;
  for (const ContextUse& use : job.uses)
    if (use.ours && use.process)
      if (const auto end = process_of(recording.sources[static_cast<std::size_t>(*use.process)]).end)
        ends.push_back(*end);
  std::sort(ends.begin(), ends.end());
  std::map<std::int64_t, Nanos> after;
  for (const ContextUse& use : job.uses) {
    if (!use.ours || !use.process) continue;
    const Nanos start = process_of(recording.sources[static_cast<std::size_t>(*use.process)]).start;
    if (const auto later = std::upper_bound(ends.begin(), ends.end(), start); later != ends.begin())
      after.try_emplace(use.pid, *std::prev(later));
  }
  return after;
}

}  // namespace

namespace {

// When the first kernel that can be of this process ran; nothing where none did.
std::optional<Nanos> first_kernel(const Recording& recording, const ContextUse& use) {
  const std::vector<UtilSample> samples = util_samples(recording, use.device);
  const auto first = std::find_if(samples.begin(), samples.end(),
                                  [&](const UtilSample& one) { return one.end > use.begin && busy_ns(one) > 0; });
  return first == samples.end() ? std::nullopt : std::optional(first->begin);
}

// Before the first kernel nothing has been trained that could be saved: what looks like that writes the data.
void without_early_checkpoints(const Recording& recording, const ContextUse& use, TextTrack& track) {
  const std::string_view checkpoint = phase_of(Family::kCheckpoint);
  const auto is_one = [&](const TextStretch& stretch) { return stretch.name == checkpoint; };
  if (std::none_of(track.stretches.begin(), track.stretches.end(), is_one)) return;
  const auto first = first_kernel(recording, use);
  std::erase_if(track.stretches,
                [&](const TextStretch& stretch) { return is_one(stretch) && (!first || stretch.time.begin < *first); });
}

// The process whose marks tell of this one: itself, or the nearest one above it; kNoSource: none.
SourceId speaker_for(SourceId process, const std::map<SourceId, TextTrack>& said, const Recording& recording) {
  constexpr int kHighest = 64;  // a damaged file may hold a ring
  for (int up = 0; process != kNoSource && up <= kHighest; ++up) {
    if (said.contains(process)) return process;
    process = recording.sources[static_cast<std::size_t>(process)].parent;
  }
  return kNoSource;
}

TextTrack track_by_stacks(const Recording& recording, const StackView& stacks, const ContextUse& use) {
  const auto looks = stacks.looks.find(*use.process);
  if (looks == stacks.looks.end()) return {};
  TextTrack track = track_of_stacks(recording, stacks, looks->second.all());
  without_early_checkpoints(recording, use, track);
  return track;
}

struct TracksOfPids {
  std::vector<TextTrack> tracks;
  std::map<std::int64_t, std::vector<std::size_t>> of_pid;
};

TracksOfPids tracks_of_holders(const Recording& recording, const JobView& job, const StackView& stacks,
                               const std::map<SourceId, TextTrack>& said) {
  TracksOfPids of;
  std::map<SourceId, std::size_t> known;  // by the process that speaks
  std::set<SourceId> seen;
  for (const ContextUse& use : job.uses) {
    if (!use.ours || !use.process || !seen.insert(*use.process).second) continue;
    const SourceId marked = speaker_for(*use.process, said, recording);
    const SourceId speaker = marked != kNoSource ? marked : *use.process;
    auto place = known.find(speaker);
    if (place == known.end()) {
      TextTrack track = marked != kNoSource ? said.at(marked) : track_by_stacks(recording, stacks, use);
      if (track.stretches.empty()) continue;
      place = known.emplace(speaker, of.tracks.size()).first;
      of.tracks.push_back(std::move(track));
    }
    of.of_pid[use.pid].push_back(place->second);
  }
  return of;
}

}  // namespace

NamedPhases named_phases(const Recording& recording, const JobView& job, const StackView& stacks) {
  const std::map<SourceId, TextTrack> said = tracks_of_marks(recording);
  auto [tracks, of_pid] = tracks_of_holders(recording, job, stacks, said);
  // Nobody is known to hold a device (a container whose driver lists no process, a job that uses none): of who speaks,
  // the one that was in phases for longest speaks for all.
  const bool may_be_ours = job.has_job || said.contains(kNoSource);
  if (tracks.empty() && may_be_ours && !job.batch.present && !said.empty()) {
    const auto longest = std::max_element(
        said.begin(), said.end(), [](const auto& x, const auto& y) { return x.second.length() < y.second.length(); });
    tracks.push_back(longest->second);
    of_pid[0].push_back(0);
  }
  NamedPhases named;
  Names names(tracks);
  const Nanos shortest = 3 * std::min(spacing_of(recording), kWidestReading) / 2;
  for (TextTrack& track : tracks) {
    named.fine.push_back(numbered(track, names));
    named.tracks.push_back(numbered(coarse(std::move(track), shortest), names));
  }
  named.names = std::move(names.names);
  named.of_pid = std::move(of_pid);
  named.after_another = after_another(recording, job);
  return named;
}

NamedPhases::Said NamedPhases::at(std::int64_t pid, Nanos when) const {
  Said said;
  const auto own = of_pid.find(pid);
  if (own == of_pid.end()) return said;
  const auto another = after_another.find(pid);
  const Nanos from = another == after_another.end() ? std::numeric_limits<Nanos>::min() : another->second;
  for (const std::size_t track : own->second) {
    const auto& all = tracks[track].stretches;
    const auto next =
        std::upper_bound(all.begin(), all.end(), when, [](Nanos t, const NamedStretch& s) { return t < s.begin; });
    if (next != all.begin() && std::prev(next)->end > when) {
      if (tracks[track].via != "output" || std::prev(next)->begin >= from)
        return {&*std::prev(next), tracks[track].via, std::prev(next)->end};
      said.until = std::min(said.until, std::prev(next)->end);
    }
    if (next != all.end()) said.until = std::min(said.until, next->begin);
  }
  return said;
}

bool NamedPhases::tells_of(const DeviceTime& device) const {
  return !of_pid.contains(0) || std::any_of(device.slices.begin(), device.slices.end(),
                                            [](const Slice& slice) { return is_busy(slice.account); });
}

}  // namespace headroom
