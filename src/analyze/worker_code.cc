// SPDX-License-Identifier: Apache-2.0
#include "analyze/worker_code.h"

#include <algorithm>
#include <map>
#include <set>

#include "analyze/looks_at_work.h"
#include "analyze/stats.h"

namespace headroom {

WorkerLooks worker_looks(const StackView& stacks, const JobView& job, const std::vector<DeviceTime>& devices) {
  WorkerLooks seen;
  std::map<std::string, std::int32_t> numbers;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    std::set<SourceId> workers;
    for (const ContextUse& use : job.uses)
      if (use.ours && use.process && use.device == devices[i].source)
        for (const SourceId id : descendants(job, *use.process))
          if (!job.holds[static_cast<std::size_t>(id)] && stacks.looks.contains(id)) workers.insert(id);
    const std::size_t first = seen.looks.size();
    for (const SourceId id : workers)
      for (const Slice& slice : devices[i].slices) {
        if (is_busy(slice.account)) continue;
        for (const ListRow& look : looks_within(stacks.looks.at(id).all(), slice.begin, slice.end)) {
          const stacks::StackKind& kind = stacks.kind_of(look);
          std::int32_t place = -1;
          if (!kind.waits && kind.family != stacks::Family::kLoaderWait && !kind.where.empty()) {
            const auto [known, fresh] = numbers.try_emplace(kind.where, static_cast<std::int32_t>(seen.places.size()));
            if (fresh) seen.places.push_back(kind.where);
            place = known->second;
          }
          seen.looks.push_back({i, look.at, place, stacks.line_of_list[look.list]});
        }
      }
    std::sort(seen.looks.begin() + static_cast<std::ptrdiff_t>(first), seen.looks.end(),
              [](const WorkerLook& x, const WorkerLook& y) { return x.at < y.at; });
  }
  return seen;
}

namespace {

// Of the looks from the first kernel to the last those at stacks that are so: the place most often seen at it.
CodeShare looks_that(const StackView& stacks, const JobView& job, const std::vector<DeviceTime>& devices,
                     bool (*are_so)(const stacks::StackKind&)) {
  if (std::none_of(stacks.kinds.begin(), stacks.kinds.end(), are_so)) return {};
  std::vector<double> looks(stacks.kinds.size());  // by kind
  for (const DeviceTime& device : devices)
    visit_work(device, stacks, job, [&](SourceId, const Slice&, std::span<const ListRow> seen) {
      for (const ListRow& look : seen) looks[stacks.number_of(look)] += 1;
    });
  std::map<std::string, double> looks_at;
  double all = 0;
  for (std::size_t kind = 0; kind < looks.size(); ++kind) {
    all += looks[kind];
    if (looks[kind] > 0 && are_so(stacks.kinds[kind])) looks_at[stacks.kinds[kind].where] += looks[kind];
  }
  const auto most = std::max_element(looks_at.begin(), looks_at.end(),
                                     [](const auto& x, const auto& y) { return x.second < y.second; });
  return most == looks_at.end() ? CodeShare{} : CodeShare{most->first, most->second / all, all};
}

}  // namespace

CodeShare kernel_waits(const StackView& stacks, const JobView& job, const std::vector<DeviceTime>& devices) {
  return looks_that(stacks, job, devices,
                    [](const stacks::StackKind& kind) { return kind.busy == stacks::Busy::kWaitsForKernels; });
}

CodeShare launch_calls(const StackView& stacks, const JobView& job, const std::vector<DeviceTime>& devices) {
  return looks_that(stacks, job, devices,
                    [](const stacks::StackKind& kind) { return kind.family == stacks::Family::kLaunch; });
}

std::map<std::string, double> idle_shares(const StackView& stacks, const JobView& job,
                                          const std::vector<DeviceTime>& devices,
                                          const std::vector<std::string>& places) {
  struct Seen {
    Nanos time = 0;
    double all = 0;
    std::vector<double> undecided;  // looks, by kind
  };
  std::map<std::string, double> seconds_at, idle_at;
  for (const DeviceTime& device : devices) {
    std::map<SourceId, Seen> processes;
    visit_work(device, stacks, job, [&](SourceId process, const Slice& slice, std::span<const ListRow> looks) {
      Seen& seen = processes[process];
      seen.time += slice.end - slice.begin;
      seen.all += static_cast<double>(looks.size());
      seen.undecided.resize(stacks.kinds.size());
      for (const ListRow& look : looks)
        if (stacks.kind_of(look).busy <= stacks::Busy::kUnknown) seen.undecided[stacks.number_of(look)] += 1;
      if (is_held_idle(slice.account) && slice.where >= 0)
        idle_at[places[static_cast<std::size_t>(slice.where)]] += seconds(slice.end - slice.begin);
    });
    for (const auto& [process, seen] : processes)
      for (std::size_t kind = 0; kind < seen.undecided.size(); ++kind)
        if (seen.undecided[kind] > 0)
          seconds_at[stacks.kinds[kind].where] += seconds(seen.time) * seen.undecided[kind] / seen.all;
  }
  std::map<std::string, double> shares;
  for (const auto& [place, all] : seconds_at)
    if (const auto idle = idle_at.find(place); idle != idle_at.end()) shares[place] = std::min(1.0, idle->second / all);
  return shares;
}

std::set<std::string> thread_waits_at_end(const StackView& stacks, const JobView& job,
                                          const std::vector<DeviceTime>& devices) {
  constexpr double kNearlyAll = 0.9;
  std::map<std::string, std::pair<double, double>> looks_at;  // in such a wait; all
  for (const DeviceTime& device : devices) {
    const auto owners = owners_on(device, stacks, job);
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

std::set<std::string> long_stays(const StackView& stacks, const JobView& job, const std::vector<DeviceTime>& devices,
                                 Nanos least) {
  constexpr Nanos kGap = kSecond / 2;  // between looks: what it was at meanwhile is not known
  struct Stay {
    const std::string* place = nullptr;
    Nanos begin = 0, last = 0;
  };
  struct Times {
    Nanos all = 0, in_long = 0;
  };
  std::map<std::string, Times> at;
  const auto close = [&](const Stay& stay, Nanos end) {
    if (stay.place == nullptr) return;
    Times& times = at[*stay.place];
    times.all += end - stay.begin;
    if (end - stay.begin >= least) times.in_long += end - stay.begin;
  };
  for (const DeviceTime& device : devices) {
    std::map<SourceId, Stay> open;
    visit_work(device, stacks, job, [&](SourceId process, const Slice&, std::span<const ListRow> looks) {
      if (stacks.looks.at(process).has_beside()) return;  // a look may be at another thread, which goes on meanwhile
      Stay& stay = open[process];
      for (const ListRow& look : looks) {
        const stacks::StackKind& kind = stacks.kind_of(look);
        const std::string* place = kind.busy <= stacks::Busy::kUnknown ? &kind.where : nullptr;
        const bool near = look.at - stay.last <= kGap;
        const bool same = place == stay.place || (place != nullptr && stay.place != nullptr && *place == *stay.place);
        if (!near || place == nullptr || !same) {
          close(stay, near ? look.at : stay.last);
          stay = {place, look.at, look.at};
        }
        stay.last = look.at;
      }
    });
    for (const auto& [process, stay] : open) close(stay, stay.last);
  }
  std::set<std::string> places;
  for (const auto& [place, times] : at)
    if (times.in_long > 0 && 2 * times.in_long >= times.all) places.insert(place);
  return places;
}

std::int32_t MainLine::line() const {
  std::size_t all = 0;
  for (const auto& [line, looks] : looks_) all += looks;
  const auto most =
      std::max_element(looks_.begin(), looks_.end(), [](const auto& x, const auto& y) { return x.second < y.second; });
  return most != looks_.end() && 2 * most->second > all ? most->first : 0;
}

namespace {

// Of each process, the time from the first idle time at a place to the last: a reading does not say which part of it
// was idle, so that a little `around` it counts, too.
std::map<SourceId, std::vector<Window>> idle_times_at(std::size_t places, const StackView& stacks, const JobView& job,
                                                      const std::vector<DeviceTime>& devices, LinesOf accounts) {
  const Nanos around = accounts == LinesOf::kStartup ? 0 : kSecond;
  std::map<SourceId, std::vector<Window>> idle;
  for (const DeviceTime& device : devices) {
    const auto owners = owners_on(device, stacks, job);
    for (const Slice& slice : device.slices) {
      const auto owner = owners.find(slice.pid);
      if (owner == owners.end() || is_busy(slice.account) || slice.where < 0) continue;
      const LinesOf its = slice.account == Account::kStartup ? LinesOf::kStartup
                          : slice.account == Account::kSync  ? LinesOf::kSync
                                                             : LinesOf::kOthers;
      if (its != accounts) continue;
      auto& times = idle.try_emplace(owner->second, places).first->second;
      Window& time = times[static_cast<std::size_t>(slice.where)];
      const Nanos begin = slice.begin - around, end = slice.end + around;
      time = time.length() == 0 ? Window{begin, end} : Window{std::min(time.begin, begin), std::max(time.end, end)};
    }
  }
  return idle;
}

}  // namespace

std::vector<CodeLine> lines_of_places(const StackView& stacks, const JobView& job,
                                      const std::vector<DeviceTime>& devices, const std::vector<std::string>& places,
                                      LinesOf accounts) {
  const auto is_known = [](std::int32_t line) { return line > 0; };
  if (std::none_of(stacks.line_of_list.begin(), stacks.line_of_list.end(), is_known))
    return std::vector<CodeLine>(places.size());
  std::map<std::string_view, std::int32_t> numbers;
  for (std::size_t place = 0; place < places.size(); ++place)
    numbers.emplace(places[place], static_cast<std::int32_t>(place));
  std::vector<std::int32_t> place_of_list;  // of those that may be idle time, else -1
  std::vector<bool> launches;
  for (std::size_t list = 0; list < stacks.line_of_list.size(); ++list) {
    const bool waits = stacks.busy_of_list[list] == stacks::Busy::kWaitsForKernels;
    const bool counts = stacks.kind_of_list[list] < stacks.kinds.size() &&  // it is in looks
                        waits == (accounts == LinesOf::kSync);
    const auto known = counts ? numbers.find(stacks.kinds[stacks.kind_of_list[list]].where) : numbers.end();
    place_of_list.push_back(known == numbers.end() ? -1 : known->second);
    launches.push_back(stacks.busy_of_list[list] == stacks::Busy::kLaunches);
  }
  std::vector<std::size_t> looks_at(place_of_list.size());  // by list
  for (const auto& [process, times] : idle_times_at(places.size(), stacks, job, devices, accounts))
    for (const ListRow& look : stacks.looks.at(process).all())
      if (const std::int32_t place = place_of_list[look.list];
          place >= 0 && times[static_cast<std::size_t>(place)].holds(look.at))
        ++looks_at[look.list];
  // Between its launches the GPU may be idle, or not: they count only where hardly anything else was seen there.
  std::vector<std::size_t> launching(places.size()), others(places.size());
  for (std::size_t list = 0; list < looks_at.size(); ++list)
    if (looks_at[list] > 0)
      (launches[list] ? launching : others)[static_cast<std::size_t>(place_of_list[list])] += looks_at[list];
  std::vector<MainLine> seen(places.size());
  std::vector<std::set<std::string_view>> files(places.size());
  for (std::size_t list = 0; list < looks_at.size(); ++list) {
    if (looks_at[list] == 0) continue;
    const auto place = static_cast<std::size_t>(place_of_list[list]);
    constexpr std::size_t kFarMore = 2;  // times
    if (launches[list] && launching[place] < kFarMore * others[place]) continue;
    seen[place].add(stacks.line_of_list[list], looks_at[list]);
    files[place].insert(stacks.kinds[stacks.kind_of_list[list]].file);
  }
  std::vector<CodeLine> lines(places.size());
  for (std::size_t place = 0; place < places.size(); ++place)
    if (files[place].size() == 1) lines[place] = {std::string(*files[place].begin()), seen[place].line()};
  return lines;  // of two files of one name none is told
}

std::vector<ThreadCode> thread_code(const StackView& stacks, const JobView& job,
                                    const std::vector<DeviceTime>& devices) {
  if (std::none_of(stacks.looks.begin(), stacks.looks.end(),
                   [](const auto& process) { return process.second.has_beside(); }))
    return {};
  struct Seen {
    std::map<std::string, double> looks_at, asleep_at;
    double all = 0, with_interpreter = 0;
  };
  std::map<Account, Seen> by_account;
  for (const DeviceTime& device : devices) {
    const auto owners = owners_on(device, stacks, job);
    for (const Slice& slice : device.slices) {
      const auto owner = owners.find(slice.pid);
      if (owner == owners.end() || is_busy(slice.account)) continue;
      Seen& seen = by_account[slice.account];
      const ProcessLooks& looks = stacks.looks.at(owner->second);
      for (const ListRow& look : looks_within(looks.all(), slice.begin, slice.end)) {
        seen.all += 1;
        const BesideMain beside = looks.beside(look);
        if (beside.kind == BesideMain::kNobody) continue;
        const stacks::StackKind& kind = stacks.kinds[beside.kind];
        if (!kind.where.empty())
          (kind.family == stacks::Family::kSleep ? seen.asleep_at : seen.looks_at)[kind.where] += 1;
        if (beside.has_interpreter) seen.with_interpreter += 1;
      }
    }
  }
  const auto most = [](const std::map<std::string, double>& looks_at) {
    const auto found = std::max_element(looks_at.begin(), looks_at.end(),
                                        [](const auto& x, const auto& y) { return x.second < y.second; });
    return found == looks_at.end() ? std::pair<std::string, double>() : std::pair(found->first, found->second);
  };
  std::vector<ThreadCode> code;
  for (const auto& [account, seen] : by_account) {
    const auto [place, looks] = most(seen.looks_at);
    const auto [asleep, sleeps] = most(seen.asleep_at);
    if (place.empty() && asleep.empty()) continue;
    code.push_back(
        {account, place, looks / seen.all, asleep, sleeps / seen.all, seen.with_interpreter / seen.all, seen.all});
  }
  return code;
}

bool one_python_thread_each(const StackView& stacks, const JobView& job) {
  bool any = false;
  for (const ContextUse& use : job.uses) {
    if (!use.ours) continue;
    if (!use.process) return false;
    const auto looks = stacks.looks.find(*use.process);
    if (looks == stacks.looks.end() || !looks->second.of_one_thread()) return false;
    any = true;
  }
  return any;
}

}  // namespace headroom
