// SPDX-License-Identifier: Apache-2.0
#include "analyze/named_phases.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <set>

#include "analyze/stats.h"
#include "analyze/work.h"
#include "base/strings.h"

namespace headroom {

namespace {

using stacks::Family;

constexpr std::array<std::string_view, 4> kWays{"marks", "nvtx", "trace", "output"};  // in order of trust
constexpr std::size_t kMostPhases = 64;
constexpr std::int64_t kMostTimes = 1'000'000'000;  // that a phase begins: a damaged file may say anything
// Of phases that stacks tell: six looks at 20 Hz, and how far apart two looks may be that belong together.
constexpr Nanos kShortest = 300 * kMillisecond;
constexpr Nanos kApart = 500 * kMillisecond;
constexpr std::string_view kOthers = "other phases";

std::string attr(const Source& source, const std::string& name) {
  const auto found = source.attrs.find(name);
  return found == source.attrs.end() ? "" : found->second;
}

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
  std::int64_t nth = 0;  // NamedStretch::nth
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

// What a thread said in one way; of several threads, the one that was in phases for longest.
std::map<SourceId, TextTrack> tracks_of_marks(const Recording& recording) {
  std::map<SourceId, TextTrack> best;
  const auto trust = [](const TextTrack& track) { return std::find(kWays.begin(), kWays.end(), track.via); };
  for (const SourceId id : recording.all(SourceKind::kMarks)) {
    const SourceId process = recording.sources[static_cast<std::size_t>(id)].parent;
    TextTrack track = track_of_marks(recording, id);
    if (process == kNoSource || track.stretches.empty() || trust(track) == kWays.end()) continue;
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

// Runs of looks at one thing; looks at something else in between that last no longer than that belong to it.
TextTrack track_of_stacks(const StackView& view, std::span<const ListRow> looks) {
  TextTrack track{"stacks", {}};
  std::vector<std::string_view> names;  // by kind
  for (const stacks::StackKind& kind : view.kinds) names.push_back(phase_of(kind.within));
  if (std::all_of(names.begin(), names.end(), [](std::string_view name) { return name.empty(); })) return track;
  for (const ListRow& look : looks) {
    const std::string_view name = names[view.number_of(look)];
    if (name.empty()) continue;
    auto& all = track.stretches;
    if (!all.empty() && all.back().name == name && look.at - all.back().time.end <= kApart)
      all.back().time.end = look.at;
    else
      all.push_back({{look.at, look.at}, std::string(name)});
  }
  std::erase_if(track.stretches, [](const auto& stretch) { return stretch.time.length() < kShortest; });
  return track;
}

// What a phase of this name waits for, if nothing else says it: by the innermost of its names.
std::optional<Account> told_by(std::string_view name) {
  std::string last = lower(name.substr(name.rfind('/') + 1));
  const auto has = [&](std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return last.find(word) != std::string::npos; });
  };
  if (has({"valid", "eval"})) return Account::kValidationHost;
  if (has({"checkpoint", "ckpt", "save"})) return Account::kCheckpoint;
  if (has({"all_reduce", "allreduce", "all-reduce", "all_gather", "allgather", "reduce_scatter", "barrier",
           "broadcast"}))
    return Account::kPeers;
  if (has({"load_data", "data_load", "dataload", "load data", "data load", "fetch", "next_batch", "get_batch"}))
    return Account::kInput;
  return std::nullopt;
}

// Numbers for names, over all tracks.
class Names {
 public:
  explicit Names(const std::vector<TextTrack>& tracks) {
    std::map<std::string, std::set<std::string>> alike;
    const auto each = [&](const auto& take) {  // and each one around it
      for (const TextTrack& track : tracks)
        for (const auto& [time, name, nth] : track.stretches)
          for (std::size_t end = name.size(); end != std::string::npos;
               end = end == 0 ? std::string::npos : name.rfind('/', end - 1))
            take(name.substr(0, end), end == name.size() ? time.length() : 0);
    };
    each([&](const std::string& name, Nanos) { alike[without_numbers(name)].insert(name); });
    each([&](const std::string& name, Nanos length) {
      const std::string plain = without_numbers(name);
      shown_[name] = alike[plain].size() > 1 ? plain : name;
      length_[shown_[name]] += length;
    });
    std::vector<std::pair<Nanos, std::string>> order;
    for (const auto& [name, length] : length_) order.emplace_back(-length, name);
    std::sort(order.begin(), order.end());
    for (const auto& [length, name] : order) {
      const bool more = names.size() + 1 >= kMostPhases && order.size() > kMostPhases;
      numbers_[name] = static_cast<std::int32_t>(more ? kMostPhases - 1 : names.size());
      if (names.size() < kMostPhases) names.push_back(more ? std::string(kOthers) : name);
    }
  }
  [[nodiscard]] std::int32_t number_of(const std::string& name) const { return numbers_.at(shown_.at(name)); }

  std::vector<std::string> names;

 private:
  std::map<std::string, std::string> shown_;
  std::map<std::string, Nanos> length_;
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
  const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  return *middle;
}

std::size_t depth_of(const std::string& name) {
  return name.empty() ? 0 : 1 + static_cast<std::size_t>(std::count(name.begin(), name.end(), '/'));
}

// From the deepest on, stretches shorter than that go to the phase around them.
TextTrack coarse(TextTrack track, Nanos shortest) {
  std::size_t deepest = 0;
  for (const auto& [time, name, nth] : track.stretches) deepest = std::max(deepest, depth_of(name));
  for (std::size_t depth = deepest; depth > 0; --depth) {
    std::vector<TextStretch> joined;
    for (auto& [time, name, nth] : track.stretches) {
      if (time.length() < shortest && depth_of(name) == depth) {
        const auto slash = name.rfind('/');
        name.resize(slash == std::string::npos ? 0 : slash);
        nth = 0;
      }
      if (!joined.empty() && joined.back().name == name && joined.back().nth == nth &&
          joined.back().time.end == time.begin)
        joined.back().time.end = time.end;
      else
        joined.push_back({time, std::move(name), nth});
    }
    track.stretches = std::move(joined);
  }
  std::erase_if(track.stretches, [](const auto& stretch) { return stretch.name.empty(); });
  return track;
}

// "epoch 4" after "epoch 3" is another time in the same phase; of what has no name of its own nobody can tell.
PhaseTrack numbered(const TextTrack& track, const Names& names) {
  PhaseTrack made{track.via, {}};
  for (const auto& [time, name, nth] : track.stretches) {
    const std::int32_t number = names.number_of(name);
    auto& all = made.stretches;
    const bool goes_on = !all.empty() && all.back().name == number && all.back().end == time.begin;
    if (goes_on && names.names[static_cast<std::size_t>(number)] == kOthers)
      all.back().end = time.end;
    else
      all.push_back({time.begin, time.end, number, nth});
  }
  return made;
}

}  // namespace

NamedPhases named_phases(const Recording& recording, const JobView& job, const StackView& stacks) {
  const std::map<SourceId, TextTrack> said = tracks_of_marks(recording);
  std::map<SourceId, std::size_t> known;  // by the process that speaks
  std::vector<TextTrack> tracks;
  std::map<std::int64_t, std::vector<std::size_t>> of_pid;
  std::set<SourceId> seen;
  for (const ContextUse& use : job.uses) {
    if (!use.ours || !use.process || !seen.insert(*use.process).second) continue;
    SourceId speaker = *use.process;
    for (int up = 0; speaker != kNoSource && !said.contains(speaker) && up < 64;
         ++up)  // a damaged file may hold a ring
      speaker = recording.sources[static_cast<std::size_t>(speaker)].parent;
    const bool marks = speaker != kNoSource && said.contains(speaker);
    if (!marks) speaker = *use.process;
    auto place = known.find(speaker);
    if (place == known.end()) {
      const auto looks = stacks.looks.find(speaker);
      TextTrack track = marks                         ? said.at(speaker)
                        : looks != stacks.looks.end() ? track_of_stacks(stacks, looks->second.all())
                                                      : TextTrack{};
      if (track.stretches.empty()) continue;
      place = known.emplace(speaker, tracks.size()).first;
      tracks.push_back(std::move(track));
    }
    of_pid[use.pid].push_back(place->second);
  }
  // Nobody is known to hold a device (a container whose driver lists no process, a job that uses none): of who speaks,
  // the one that was in phases for longest speaks for all.
  if (tracks.empty() && job.has_job && !job.batch.present && !said.empty()) {
    const auto longest = std::max_element(
        said.begin(), said.end(), [](const auto& x, const auto& y) { return x.second.length() < y.second.length(); });
    tracks.push_back(longest->second);
    of_pid[0].push_back(0);
  }
  NamedPhases named;
  Names names(tracks);
  constexpr Nanos kWidest = 3600 * kSecond;  // of readings: a file may claim anything
  const Nanos shortest = 3 * std::min(spacing_of(recording), kWidest) / 2;
  for (TextTrack& track : tracks) {
    named.fine.push_back(numbered(track, names));
    named.tracks.push_back(numbered(coarse(std::move(track), shortest), names));
  }
  named.names = std::move(names.names);
  named.of_pid = std::move(of_pid);
  return named;
}

namespace {

// The stretch that holds `at`, and until when the answer is the same.
std::pair<const NamedStretch*, Nanos> stretch_at(const NamedPhases& named, const std::vector<std::size_t>& tracks,
                                                 Nanos at, std::string_view& via) {
  Nanos until = INT64_MAX;
  for (const std::size_t track : tracks) {
    const auto& all = named.tracks[track].stretches;
    const auto next =
        std::upper_bound(all.begin(), all.end(), at, [](Nanos t, const NamedStretch& s) { return t < s.begin; });
    if (next != all.begin() && std::prev(next)->end > at) {
      via = named.tracks[track].via;
      return {&*std::prev(next), std::prev(next)->end};
    }
    if (next != all.end()) until = std::min(until, next->begin);
  }
  return {nullptr, until};
}

Tiers tier_of(std::string_view via) { return via == "stacks" ? "Y" : via == "output" ? "L" : "X"; }

// Marks and output know more than the counters of /proc, and less than stacks that name a family.
void tell(Slice& slice, const std::string& name, std::string_view via) {
  const bool guessed =
      slice.tiers.has("P") && (slice.account == Account::kCheckpoint || slice.account == Account::kInput);
  const bool open = guessed || slice.account == Account::kHostCode || slice.account == Account::kUnexplained;
  const auto account = open || slice.account == Account::kTeardown ? told_by(name) : std::nullopt;
  if (!account || (!open && account == Account::kInput)) return;
  slice.account = *account;
  slice.tiers |= tier_of(via);
  slice.confidence = Confidence::kMedium;
}

}  // namespace

namespace {

// Of a device on which no kernel ran and nobody was seen, no phases are told.
bool has_phases(const NamedPhases& named, const DeviceTime& device) {
  return !named.of_pid.contains(0) || std::any_of(device.slices.begin(), device.slices.end(),
                                                  [](const Slice& slice) { return is_busy(slice.account); });
}

}  // namespace

void mark_phases(const NamedPhases& named, std::vector<DeviceTime>& devices) {
  if (named.tracks.empty()) return;
  for (DeviceTime& device : devices) {
    if (!has_phases(named, device)) continue;
    std::vector<Slice> marked;
    for (Slice slice : device.slices) {
      const auto tracks = named.of_pid.find(slice.pid);
      while (tracks != named.of_pid.end() && slice.begin < slice.end) {
        std::string_view via;
        const auto [stretch, until] = stretch_at(named, tracks->second, slice.begin, via);
        Slice part = slice;
        part.end = std::min(slice.end, until);
        if (stretch) {
          part.named = stretch->name;
          tell(part, named.names[static_cast<std::size_t>(stretch->name)], via);
        }
        marked.push_back(part);
        slice.begin = part.end;
      }
      if (slice.begin < slice.end) marked.push_back(slice);
    }
    device.slices = std::move(marked);
  }
}

namespace {

std::optional<Nanos> period_of(const std::vector<Nanos>& begins, const Thresholds& limits) {
  if (begins.size() < 3) return std::nullopt;
  std::vector<Nanos> gaps;
  for (std::size_t i = 1; i < begins.size(); ++i) gaps.push_back(begins[i] - begins[i - 1]);
  const auto median = [](std::vector<Nanos>& values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
  };
  const Nanos middle = median(gaps);
  for (Nanos& gap : gaps) gap = std::abs(gap - middle);
  const double spread = limits[Threshold::kPeriodSpread] * static_cast<double>(middle);
  return static_cast<double>(median(gaps)) <= spread ? std::optional(middle) : std::nullopt;
}

}  // namespace

void describe_phases(const Recording& recording, const NamedPhases& named, std::vector<DeviceTime>& devices,
                     const Thresholds& limits, std::vector<Phase>& phases) {
  const StepCounts steps = step_counts(recording);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    std::map<std::int32_t, Nanos> total, busy;
    std::set<std::size_t> tracks;
    for (const Slice& slice : devices[i].slices) {
      if (const auto own = named.of_pid.find(slice.pid); own != named.of_pid.end())
        tracks.insert(own->second.begin(), own->second.end());
      if (slice.named < 0) continue;
      total[slice.named] += slice.end - slice.begin;
      if (is_busy(slice.account)) busy[slice.named] += slice.end - slice.begin;
    }
    if (tracks.empty() || !has_phases(named, devices[i])) continue;
    const Window window{devices[i].slices.front().begin, devices[i].slices.back().end};
    const Track& readings = recording.tracks[static_cast<std::size_t>(devices[i].source)];
    const auto kept = [&](Metric metric) { return excluded_readings(recording, devices[i].source, metric, limits); };
    const MetricStats power = kept(Metric::kPower), used = kept(Metric::kMemoryUsed), util = kept(Metric::kMemoryUtil);
    const auto describe = [&](std::int32_t name, const std::vector<PhaseTrack>& said) {
      Phase phase;
      phase.name = named.names[static_cast<std::size_t>(name)];
      phase.device = i;
      std::vector<Nanos> begins;
      std::vector<Window> times;
      for (const std::size_t track : tracks) {
        std::int64_t last = 0;  // time that is counted
        for (const NamedStretch& stretch : said[track].stretches) {
          const Window time{std::max(stretch.begin, window.begin), std::min(stretch.end, window.end)};
          if (stretch.name != name || time.length() <= 0) continue;
          phase.named_by = said[track].via;
          times.push_back(time);
          phase.total += std::min(time.length(), INT64_MAX - phase.total);
          if (stretch.nth > 0 && stretch.nth == last) continue;  // it goes on after something else
          begins.push_back(stretch.begin);
          // Those that were too short for a row of their own began, too.
          phase.count += last > 0 && stretch.nth > last ? stretch.nth - last : 1;
          last = stretch.nth;
        }
      }
      std::sort(begins.begin(), begins.end());
      phase.period = period_of(begins, limits);
      phase.steps = steps.within(times);
      return std::pair(phase, times);
    };
    std::vector<std::pair<Nanos, std::int32_t>> order;
    for (const auto& [name, ns] : total) order.emplace_back(-ns, name);
    std::sort(order.begin(), order.end());
    std::map<std::int32_t, std::int32_t> index;
    for (const auto& [ns, name] : order) {
      auto [phase, times] = describe(name, named.tracks);
      phase.total = total[name];
      phase.gpu_util_ratio = static_cast<double>(busy[name]) / static_cast<double>(std::max<Nanos>(1, total[name]));
      const auto mean = [&, &spent = times](const MetricStats& stats) -> std::optional<double> {
        double sum = 0, weight = 0;
        for (const Window& time : spent)
          if (const auto value = mean_between(readings, stats, time.begin, time.end)) {
            sum += *value * seconds(time.length());
            weight += seconds(time.length());
          }
        return weight > 0 ? std::optional(sum / weight) : std::nullopt;
      };
      phase.power_watts = mean(power);
      phase.memory_used_bytes = mean(used);
      phase.memory_util_ratio = mean(util);
      index[name] = static_cast<std::int32_t>(phases.size());
      phases.push_back(std::move(phase));
    }
    std::vector<Phase> finer;
    std::set<std::int32_t> listed;
    for (const std::size_t track : tracks)
      for (const NamedStretch& stretch : named.fine[track].stretches)
        if (!index.contains(stretch.name) && listed.insert(stretch.name).second)
          if (Phase phase = describe(stretch.name, named.fine).first; phase.count > 0)
            finer.push_back(std::move(phase));
    std::stable_sort(finer.begin(), finer.end(), [](const Phase& x, const Phase& y) { return x.total > y.total; });
    phases.insert(phases.end(), std::make_move_iterator(finer.begin()), std::make_move_iterator(finer.end()));
    for (Slice& slice : devices[i].slices)
      if (slice.named >= 0) slice.named = index.at(slice.named);
  }
}

}  // namespace headroom
