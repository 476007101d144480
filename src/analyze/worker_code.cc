// SPDX-License-Identifier: Apache-2.0
#include "analyze/worker_code.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "analyze/stats.h"

namespace headroom {

namespace {

// What the processes on a device have started and what holds none itself, where its stacks are known.
std::set<SourceId> helpers_on(const DeviceTime& device, const WatchedJob& watched) {
  std::set<SourceId> workers;
  for (const ContextUse& use : watched.job.uses)
    if (use.ours && use.process && use.device == device.source)
      for (const SourceId id : descendants(watched.job, *use.process))
        if (!watched.job.holds[static_cast<std::size_t>(id)] && watched.stacks.looks.contains(id)) workers.insert(id);
  return workers;
}

}  // namespace

namespace {

// Python's own queues and locks, with no code of the user's around them: it is what passes on what others ask for.
bool hands_over(const stacks::StackKind& kind) {
  constexpr std::array<std::string_view, 3> kFiles{"(threading.py)", "(queues.py)", "(connection.py)"};
  return kind.file.empty() &&
         std::any_of(kFiles.begin(), kFiles.end(), [&](std::string_view file) { return kind.where.ends_with(file); });
}

}  // namespace

WorkerLooks worker_looks(const WatchedJob& watched) {
  const StackView& stacks = watched.stacks;
  WorkerLooks seen;
  Places places;
  for (std::size_t i = 0; i < watched.devices.size(); ++i) {
    const DeviceTime& device = watched.devices[i];
    const std::size_t first = seen.looks.size();
    for (const SourceId id : helpers_on(device, watched))
      for (const Slice& slice : device.slices) {
        if (is_busy(slice.account)) continue;
        for (const ListRow& look : looks_within(stacks.looks.at(id).all(), slice.begin, slice.end)) {
          const stacks::StackKind& kind = stacks.kind_of(look);
          const bool waits = kind.waits || kind.family == stacks::Family::kLoaderWait || hands_over(kind);
          seen.looks.push_back({i, look.at, waits ? -1 : places.index_of(kind.where), stacks.line_of_list[look.list]});
        }
      }
    std::sort(seen.looks.begin() + static_cast<std::ptrdiff_t>(first), seen.looks.end(),
              [](const WorkerLook& x, const WorkerLook& y) { return x.at < y.at; });
  }
  seen.places = std::move(places).names();
  return seen;
}

namespace {

// The first of those with the most looks.
template <class Map>
auto most_seen(const Map& looks) {
  return std::max_element(looks.begin(), looks.end(), [](const auto& x, const auto& y) { return x.second < y.second; });
}

// Of the looks from the first kernel to the last those at stacks that are so: the place most often seen at it.
CodeShare looks_that(const WatchedJob& watched, bool (*are_so)(const stacks::StackKind&)) {
  const StackView& stacks = watched.stacks;
  if (std::none_of(stacks.kinds.begin(), stacks.kinds.end(), are_so)) return {};
  std::vector<double> looks(stacks.kinds.size());  // by kind
  for (const DeviceTime& device : watched.devices)
    visit_work(device, watched, [&](SourceId, const Slice&, std::span<const ListRow> seen) {
      for (const ListRow& look : seen) looks[stacks.number_of(look)] += 1;
    });
  std::map<std::string, double> looks_at;
  double all = 0;
  for (std::size_t kind = 0; kind < looks.size(); ++kind) {
    all += looks[kind];
    if (looks[kind] > 0 && are_so(stacks.kinds[kind])) looks_at[stacks.kinds[kind].where] += looks[kind];
  }
  const auto most = most_seen(looks_at);
  return most == looks_at.end() ? CodeShare{} : CodeShare{most->first, most->second / all, all};
}

}  // namespace

CodeShare kernel_waits(const WatchedJob& watched) {
  return looks_that(watched, [](const stacks::StackKind& kind) { return kind.busy == stacks::Busy::kWaitsForKernels; });
}

CodeShare launch_calls(const WatchedJob& watched) {
  return looks_that(watched, [](const stacks::StackKind& kind) { return kind.family == stacks::Family::kLaunch; });
}

namespace {

// Of a process at work: how long it was, and its looks at what may be idle time or not.
struct Undecided {
  Nanos time = 0;
  double all = 0;
  std::vector<double> looks;  // by kind

  void add(const StackView& stacks, const Slice& slice, std::span<const ListRow> seen, stacks::Busy most) {
    time += slice.end - slice.begin;
    all += static_cast<double>(seen.size());
    looks.resize(stacks.kinds.size());
    for (const ListRow& look : seen)
      if (stacks.kind_of(look).busy <= most) looks[stacks.number_of(look)] += 1;
  }
};

}  // namespace

std::map<std::string, double> idle_shares(const WatchedJob& watched, const std::vector<std::string>& places,
                                          stacks::Busy most, double errors) {
  struct There {
    double seconds = 0, error = 0;  // the latter squared
  };
  std::map<std::string, There> at;
  std::map<std::string, double> idle_at;
  for (const DeviceTime& device : watched.devices) {
    std::map<SourceId, Undecided> processes;
    visit_work(device, watched, [&](SourceId process, const Slice& slice, std::span<const ListRow> looks) {
      processes[process].add(watched.stacks, slice, looks, most);
      if (is_held_idle(slice.account) && slice.where >= 0)
        idle_at[places[static_cast<std::size_t>(slice.where)]] += seconds(slice.end - slice.begin);
    });
    for (const auto& [process, seen] : processes)
      for (std::size_t kind = 0; kind < seen.looks.size(); ++kind)
        if (seen.looks[kind] > 0) {
          There& there = at[watched.stacks.kinds[kind].where];
          const double per_look = seconds(seen.time) / seen.all;
          there.seconds += per_look * seen.looks[kind];
          there.error += per_look * per_look * seen.looks[kind] * (1 - seen.looks[kind] / seen.all);
        }
  }
  std::map<std::string, double> shares;
  for (const auto& [place, there] : at)
    if (const auto idle = idle_at.find(place); idle != idle_at.end())
      shares[place] = std::min(1.0, idle->second / std::max(there.seconds - errors * std::sqrt(there.error), 1e-9));
  return shares;
}

std::set<std::string> thread_waits_at_end(const WatchedJob& watched) {
  constexpr double kNearlyAll = 0.9;
  const StackView& stacks = watched.stacks;
  std::map<std::string, std::pair<double, double>> looks_at;  // in such a wait; all
  for (const DeviceTime& device : watched.devices) {
    const auto owners = owners_on(device, watched);
    for (auto slice = device.slices.rbegin(); slice != device.slices.rend() && !is_busy(slice->account); ++slice) {
      const auto owner = owners.find(slice->pid);
      if (owner == owners.end()) continue;
      for (const ListRow& look : looks_within(stacks.looks.at(owner->second).all(), slice->begin, slice->end)) {
        const stacks::StackKind& kind = stacks.kind_of(look);
        auto& [waits, all] = looks_at[kind.where];
        all += 1;
        if (kind.for_thread != stacks::ForThread::kNo && kind.waits) waits += 1;
      }
    }
  }
  std::set<std::string> places;
  for (const auto& [place, looks] : looks_at)
    if (looks.first > 0 && looks.first >= kNearlyAll * looks.second) places.insert(place);
  return places;
}

namespace {

// A process at one place, look after look.
struct Stay {
  const std::string* place = nullptr;
  Nanos begin = 0, last = 0;
  std::size_t waits = 0, runs = 0;  // looks
};

// How long processes stay at places.
class Stays {
 public:
  explicit Stays(Nanos least_long) : least_long_(least_long) {}

  // By a look at this place the stay goes on, or ends and another one begins; nullptr: it is no place. Who waits there
  // stays until what it waits for comes.
  void go_on(Stay& stay, const std::string* place, bool waits, Nanos at) {
    constexpr Nanos kGap = kSecond / 2;  // between looks: what it was at meanwhile is not known
    const bool near = at - stay.last <= kGap;
    const bool same = place != nullptr && (place == stay.place || (stay.place != nullptr && *place == *stay.place));
    if (!near || !same) {
      end(stay, near ? at : stay.last);
      stay = {place, at, at};
    }
    stay.last = at;
    (waits ? stay.waits : stay.runs)++;
  }

  void end(const Stay& stay, Nanos end) {
    if (stay.place == nullptr) return;
    Times& times = at_[*stay.place];
    if (times.stays++ == 0) times.begin = stay.begin;
    times.end = end;
    times.waits += stay.waits;
    times.runs += stay.runs;
    times.all += end - stay.begin;
    if (end - stay.begin >= least_long_) times.in_long += end - stay.begin;
  }

  [[nodiscard]] std::set<std::string> mostly_long() const {
    std::set<std::string> places;
    for (const auto& [place, times] : at_)
      if (times.in_long > 0 && 2 * times.in_long >= times.all && !by_chance(times)) places.insert(place);
    return places;
  }

 private:
  struct Times {
    Nanos all = 0, in_long = 0, begin = 0, end = 0;
    std::size_t waits = 0, runs = 0, stays = 0;  // the first two: looks
  };

  // Whether hardly less of them would lie in long stays if each look found the process there with the same chance: then
  // it may have left many times between two looks, as in short steps that are mostly this.
  [[nodiscard]] bool by_chance(const Times& times) const {
    constexpr std::size_t kMany = 8;
    constexpr double kHardlyLess = 0.25;
    if (times.stays < kMany || times.waits >= times.runs || times.end <= times.begin) return false;
    const double there = static_cast<double>(times.all) / static_cast<double>(times.end - times.begin);
    const double in_row = static_cast<double>(least_long_) * static_cast<double>(times.waits + times.runs) /
                          static_cast<double>(times.all);  // looks that a long stay has
    const double in_rows =
        std::pow(there, in_row - 1) * (in_row - (in_row - 1) * there);  // of the looks there, by chance
    return static_cast<double>(times.in_long) / static_cast<double>(times.all) - in_rows < kHardlyLess;
  }

  Nanos least_long_;
  std::map<std::string, Times> at_;
};

}  // namespace

std::set<std::string> long_stays(const WatchedJob& watched, Nanos least) {
  const StackView& stacks = watched.stacks;
  Stays stays(least);
  for (const DeviceTime& device : watched.devices) {
    std::map<SourceId, Stay> open;
    visit_work(device, watched, [&](SourceId process, const Slice&, std::span<const ListRow> looks) {
      if (stacks.looks.at(process).has_beside()) return;  // a look may be at another thread, which goes on meanwhile
      Stay& stay = open[process];
      for (const ListRow& look : looks) {
        const stacks::StackKind& kind = stacks.kind_of(look);
        stays.go_on(stay, kind.busy <= stacks::Busy::kUnknown ? &kind.where : nullptr, kind.waits, look.at);
      }
    });
    for (const auto& [process, stay] : open) stays.end(stay, stay.last);
  }
  return stays.mostly_long();
}

double MainLine::all() const {
  std::size_t all = 0;
  for (const auto& [line, looks] : looks_) all += looks;
  return static_cast<double>(all);
}

std::int32_t MainLine::line() const {
  const auto most = most_seen(looks_);
  return most != looks_.end() && 2 * static_cast<double>(most->second) > all() ? most->first : 0;
}

std::vector<CodeLine::Share> MainLine::often() const {
  constexpr double kGoodPart = 0.15, kFewest = 20;  // of the looks; looks
  std::vector<CodeLine::Share> lines;
  if (all() < kFewest) return lines;
  for (const auto& [line, looks] : looks_)
    if (const double share = static_cast<double>(looks) / all(); line > 0 && share >= kGoodPart)
      lines.push_back({line, share});
  std::stable_sort(lines.begin(), lines.end(), [](const auto& x, const auto& y) { return x.of_looks > y.of_looks; });
  return lines;
}

namespace {

// Of a wait for data not all frames tell that it is one.
bool is_of(Account account, LinesOf accounts) {
  if (account == Account::kStartup) return accounts == LinesOf::kStartup;
  if (account == Account::kSync) return accounts == LinesOf::kSync;
  return accounts == LinesOf::kOthers || (accounts == LinesOf::kInput && account == Account::kInput);
}

bool is_of(const stacks::StackKind& kind, LinesOf accounts) {
  const bool waits = kind.busy == stacks::Busy::kWaitsForKernels;
  if (waits || accounts == LinesOf::kSync) return waits && accounts == LinesOf::kSync;
  const bool loads = stacks::info(kind.family).account == Account::kInput;
  return accounts == LinesOf::kStartup || loads == (accounts == LinesOf::kInput);
}

// Of each process, the time from the first idle time at a place to the last: a reading does not say which part of it
// was idle, so that a little `around` it counts, too, but for what is before the first kernel, or after it.
std::map<SourceId, std::vector<Window>> idle_times_at(std::size_t places, const WatchedJob& watched, LinesOf accounts) {
  const Nanos around = accounts == LinesOf::kStartup ? 0 : kSecond;
  std::map<SourceId, std::vector<Window>> idle;
  for (const DeviceTime& device : watched.devices) {
    Nanos started = std::numeric_limits<Nanos>::min();  // the first kernel, where its start was seen
    for (const Slice& slice : device.slices)
      if (slice.account == Account::kStartup) started = slice.end;
    visit_idle(device, watched, [&](SourceId process, const Slice& slice) {
      if (slice.where < 0 || !is_of(slice.account, accounts)) return;
      auto& times = idle.try_emplace(process, places).first->second;
      Window& time = times[static_cast<std::size_t>(slice.where)];
      const Nanos begin = slice.begin >= started ? std::max(slice.begin - around, started) : slice.begin - around;
      const Nanos end = slice.end + around;
      time = time.length() == 0 ? Window{begin, end} : Window{std::min(time.begin, begin), std::max(time.end, end)};
    });
  }
  return idle;
}

// Lists of frames, by their number.
struct ListsAtPlaces {
  std::vector<std::int32_t> place;  // that each names, if that may be idle time of the accounts; else -1
  std::vector<std::size_t> looks;   // at each, in the idle time of its place
};

std::vector<std::int32_t> places_of_lists(const StackView& stacks, const std::vector<std::string>& places,
                                          LinesOf accounts) {
  std::map<std::string_view, std::int32_t> numbers;
  for (std::size_t place = 0; place < places.size(); ++place)
    numbers.emplace(places[place], static_cast<std::int32_t>(place));
  std::vector<std::int32_t> place_of_list;
  for (std::size_t list = 0; list < stacks.line_of_list.size(); ++list) {
    const bool counts = stacks.kind_of_list[list] < stacks.kinds.size() &&  // it is in looks
                        is_of(stacks.kinds[stacks.kind_of_list[list]], accounts);
    const auto known = counts ? numbers.find(stacks.kinds[stacks.kind_of_list[list]].where) : numbers.end();
    place_of_list.push_back(known == numbers.end() ? -1 : known->second);
  }
  return place_of_list;
}

ListsAtPlaces lists_at(const std::vector<std::string>& places, const WatchedJob& watched, LinesOf accounts) {
  ListsAtPlaces lists{places_of_lists(watched.stacks, places, accounts), {}};
  lists.looks.resize(lists.place.size());
  for (const auto& [process, times] : idle_times_at(places.size(), watched, accounts))
    for (const ListRow& look : watched.stacks.looks.at(process).all())
      if (const std::int32_t place = lists.place[look.list];
          place >= 0 && times[static_cast<std::size_t>(place)].holds(look.at))
        ++lists.looks[look.list];
  return lists;
}

// Between its launches the GPU may be idle, or not: they count only where hardly anything else was seen there.
void leave_out_launches(const StackView& stacks, std::size_t places, ListsAtPlaces& lists) {
  constexpr std::size_t kFarMore = 2;  // times
  const auto launches = [&](std::size_t list) { return stacks.busy_of_list[list] == stacks::Busy::kLaunches; };
  std::vector<std::size_t> launching(places), others(places);
  for (std::size_t list = 0; list < lists.looks.size(); ++list)
    if (lists.looks[list] > 0)
      (launches(list) ? launching : others)[static_cast<std::size_t>(lists.place[list])] += lists.looks[list];
  for (std::size_t list = 0; list < lists.looks.size(); ++list) {
    if (lists.looks[list] == 0 || !launches(list)) continue;
    const auto place = static_cast<std::size_t>(lists.place[list]);
    if (launching[place] < kFarMore * others[place]) lists.looks[list] = 0;
  }
}

}  // namespace

std::vector<CodeLine> lines_of_places(const WatchedJob& watched, const std::vector<std::string>& places,
                                      LinesOf accounts) {
  const StackView& stacks = watched.stacks;
  std::vector<CodeLine> lines(places.size());
  const auto is_known = [](std::int32_t line) { return line > 0; };
  if (std::none_of(stacks.line_of_list.begin(), stacks.line_of_list.end(), is_known)) return lines;
  ListsAtPlaces lists = lists_at(places, watched, accounts);
  leave_out_launches(stacks, places.size(), lists);
  std::vector<MainLine> seen(places.size());
  std::vector<std::set<std::string_view>> files(places.size());
  for (std::size_t list = 0; list < lists.looks.size(); ++list) {
    if (lists.looks[list] == 0) continue;
    const auto place = static_cast<std::size_t>(lists.place[list]);
    seen[place].add(stacks.line_of_list[list], lists.looks[list]);
    files[place].insert(stacks.kinds[stacks.kind_of_list[list]].file);
  }
  for (std::size_t place = 0; place < places.size(); ++place)
    if (files[place].size() == 1)
      lines[place] = {std::string(*files[place].begin()), seen[place].line(), seen[place].often()};
  return lines;  // of two files of one name none is told
}

namespace {

// Looks at main threads, and what other threads were at meanwhile.
struct LooksBeside {
  std::map<std::string, double> looks_at, asleep_at;
  double all = 0, with_interpreter = 0;

  void add(const BesideMain& beside, const StackView& stacks) {
    all += 1;
    if (beside.kind == BesideMain::kNobody) return;
    const stacks::StackKind& kind = stacks.kinds[beside.kind];
    if (!kind.where.empty()) (kind.family == stacks::Family::kSleep ? asleep_at : looks_at)[kind.where] += 1;
    if (beside.has_interpreter) with_interpreter += 1;
  }
};

}  // namespace

std::vector<ThreadCode> thread_code(const WatchedJob& watched) {
  const StackView& stacks = watched.stacks;
  if (std::none_of(stacks.looks.begin(), stacks.looks.end(),
                   [](const auto& process) { return process.second.has_beside(); }))
    return {};
  std::map<Account, LooksBeside> by_account;
  for (const DeviceTime& device : watched.devices)
    visit_idle(device, watched, [&](SourceId process, const Slice& slice) {
      LooksBeside& seen = by_account[slice.account];
      const ProcessLooks& looks = stacks.looks.at(process);
      for (const ListRow& look : looks_within(looks.all(), slice.begin, slice.end))
        seen.add(looks.beside(look), stacks);
    });
  std::vector<ThreadCode> code;
  for (const auto& [account, seen] : by_account) {
    ThreadCode one{.account = account, .with_interpreter = seen.with_interpreter / seen.all, .looks = seen.all};
    if (const auto most = most_seen(seen.looks_at); most != seen.looks_at.end())
      one.place = most->first, one.share = most->second / seen.all;
    if (const auto most = most_seen(seen.asleep_at); most != seen.asleep_at.end())
      one.asleep = most->first, one.asleep_share = most->second / seen.all;
    if (!one.place.empty() || !one.asleep.empty()) code.push_back(std::move(one));
  }
  return code;
}

double interpreter_taken_at_most(const WatchedJob& watched) {
  constexpr double kDeviations = 2;  // of chance
  double taken = 0;
  for (const auto& [process, looks] : watched.stacks.looks) {
    const auto all = looks.all();
    if (all.empty() || !watched.job.holds[static_cast<std::size_t>(process)]) continue;
    const auto number = static_cast<double>(all.size());
    double with = 0;
    for (const ListRow& look : all) with += looks.beside(look).has_interpreter ? 1 : 0;
    const double share = with / number;
    const double chance = kDeviations * std::sqrt(share * (1 - share) / number);
    taken += std::min(1.0, share + chance) * static_cast<double>(all.back().at - all.front().at);
  }
  return taken;
}

bool one_python_thread_each(const WatchedJob& watched) {
  bool any = false;
  for (const ContextUse& use : watched.job.uses) {
    if (!use.ours) continue;
    if (!use.process) return false;
    const auto looks = watched.stacks.looks.find(*use.process);
    if (looks == watched.stacks.looks.end() || !looks->second.of_one_thread()) return false;
    any = true;
  }
  return any;
}

}  // namespace headroom
