// SPDX-License-Identifier: Apache-2.0
#include "analyze/stack_evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "base/steady.h"
#include "model/places.h"

namespace headroom {

namespace {

using stacks::Family;

constexpr Nanos kAround = kSecond;
constexpr Nanos kBlock = kSecond;         // before the first kernel and after the last: of so much one mixture
constexpr std::int64_t kHoldsTheGil = 1;  // ListRow::value of a python_thread

// The kinds of the stacks of a recording, each once.
class Kinds {
 public:
  Kinds(const Recording& recording, const stacks::Families& families, StackView& view)
      : recording_(recording), families_(families), view_(view) {
    view.kind_of_list.assign(recording.lists.size(), kNone);
    view.busy_of_list.resize(recording.lists.size());
    view.line_of_list.resize(recording.lists.size());
    const auto threads = recording.all(SourceKind::kPythonThread);
    lines_ran_ = std::any_of(threads.begin(), threads.end(), [&](SourceId id) {
      return recording.sources[static_cast<std::size_t>(id)].attrs.contains("lines");
    });
  }

  std::uint32_t of(ListId list) {
    const std::uint32_t known = view_.kind_of_list[list];
    return known != kNone ? known : make(list);
  }

  [[nodiscard]] bool waits_for_thread(ListId list) {
    return view_.kinds[of(list)].for_thread != stacks::ForThread::kNo;
  }

  // What stands for one of these, of which it is not known which.
  ListId one_of(std::vector<ListId> lists) {
    std::map<std::string, const stacks::StackKind*> by_place;
    for (const ListId list : lists) by_place.emplace(view_.kinds[of(list)].where, &view_.kinds[of(list)]);
    if (by_place.size() == 1) return lists.front();
    std::sort(lists.begin(), lists.end());
    lists.erase(std::unique(lists.begin(), lists.end()), lists.end());
    const auto [known, is_new] =
        several_.try_emplace(lists, static_cast<ListId>(recording_.lists.size() + view_.several.size()));
    if (!is_new) return known->second;
    stacks::StackKind kind = *by_place.begin()->second;
    kind.where = either(by_place);
    kind.caller.clear();
    for (const auto& [place, other] : by_place) {
      if (other->family != kind.family) kind.family = Family::kNone;
      if (other->within != kind.within) kind.within = Family::kNone;
      if (other->busy != kind.busy) kind.busy = stacks::Busy::kUnknown;
      kind.own &= other->own;
      kind.of_processes &= other->of_processes;
      kind.for_child &= other->for_child;
    }
    view_.kind_of_list.push_back(kNone);
    view_.busy_of_list.push_back(kind.busy);
    view_.line_of_list.push_back(0);
    view_.several.push_back(std::move(lists));
    add(known->second, std::move(kind));
    return known->second;
  }

  // What stands for one of these, or for several, at which another thread is while the main one waits for it, at
  // `wait`: a part of the same, such as validation; and what that makes is input where nothing tells of what it is a
  // part.
  ListId feeding(ListId list, std::uint32_t wait) {
    stacks::StackKind kind = view_.kinds[of(list)];
    const Account account = stacks::info(kind.family).account;
    if (kind.file.empty() || (account != Account::kUnexplained && account != Account::kInput)) return list;
    const auto [known, is_new] = feeding_.try_emplace(
        std::pair(list, wait), static_cast<ListId>(recording_.lists.size() + view_.several.size()));
    if (!is_new) return known->second;
    const stacks::StackKind& waits = view_.kinds[wait];
    const bool told = !stacks::only_waits(waits.family);
    if (account == Account::kUnexplained && (told || waits.for_thread == stacks::ForThread::kResult))
      kind.family = told ? waits.family : Family::kLoaderFetch;
    kind.busy = waits.busy;
    kind.feeds_main = true;
    const std::int32_t line = view_.line_of_list[list];
    view_.kind_of_list.push_back(kNone);
    view_.busy_of_list.push_back(kind.busy);
    view_.line_of_list.push_back(line);
    view_.several.push_back(list < recording_.lists.size() ? std::vector{list}
                                                           : view_.several[list - recording_.lists.size()]);
    add(known->second, std::move(kind));
    return known->second;
  }

  // A function that is called as a part of one thing and of another, such as validation and training, is named with
  // its callers: else what both cost would seem to be in one place.
  void name_callers(const std::vector<std::uint64_t>& counts) {
    constexpr double kLeast = 0.05;  // of the looks at it: less is an accident of sampling
    std::map<std::string, std::map<Family, double>> outside;
    std::vector<std::pair<ListId, stacks::StackKind>> called;
    for (ListId list = 0; list < recording_.lists.size(); ++list) {
      if (counts[list] == 0) continue;
      stacks::StackKind kind = read(list);
      if (kind.caller.empty()) continue;
      outside[kind.where][kind.outside] += static_cast<double>(counts[list]);
      if (kind.busy != stacks::Busy::kWaitsForKernels)
        view_.callers[kind.where][kind.caller] += static_cast<double>(counts[list]);
      called.emplace_back(list, std::move(kind));
    }
    const auto of_several = [&](const std::string& place) {
      const std::map<Family, double>& looks = outside[place];
      double all = 0;
      for (const auto& [family, count] : looks) all += count;
      return std::count_if(looks.begin(), looks.end(), [&](const auto& one) { return one.second >= kLeast * all; }) > 1;
    };
    for (auto& [list, kind] : called)
      if (of_several(kind.where)) {
        kind.where = with_caller(kind.where, kind.caller);
        add(list, std::move(kind));
      }
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // "fetch (train.py) or watch (train.py)"
  static std::string either(const std::map<std::string, const stacks::StackKind*>& by_place) {
    constexpr std::size_t kMost = 3;
    if (by_place.size() > kMost) return fmt::format("one of {} threads' functions", by_place.size());
    std::string words;
    for (const auto& [place, kind] : by_place)
      words += (words.empty() ? "" : " or ") + (place.empty() ? "other code" : place);
    return words;
  }

  stacks::StackKind read(ListId list) {
    frames_.clear();
    for (const TextId text : recording_.lists[list]) frames_.push_back(stacks::frame_of(recording_.texts[text]));
    return families_.kind_of(frames_);
  }

  std::uint32_t make(ListId list) {
    stacks::StackKind kind = read(list);
    view_.busy_of_list[list] = kind.busy;
    if (lines_ran_) view_.line_of_list[list] = kind.line;
    return add(list, std::move(kind));
  }

  std::uint32_t add(ListId list, stacks::StackKind kind) {
    const auto [same, is_new] =
        numbers_.try_emplace(std::tuple(kind.family, kind.within, kind.own, kind.busy, kind.where, kind.waits,
                                        kind.of_processes, kind.for_child, kind.for_thread, kind.feeds_main),
                             view_.kinds.size());
    if (is_new) view_.kinds.push_back(std::move(kind));
    return view_.kind_of_list[list] = static_cast<std::uint32_t>(same->second);
  }

  const Recording& recording_;
  const stacks::Families& families_;
  StackView& view_;
  bool lines_ran_ = false;  // the lines of frames are those that ran
  std::vector<stacks::Frame> frames_;
  std::map<std::tuple<Family, Family, bool, stacks::Busy, std::string, bool, bool, bool, stacks::ForThread, bool>,
           std::size_t>
      numbers_;
  std::map<std::vector<ListId>, ListId> several_;
  std::map<std::pair<ListId, std::uint32_t>, ListId> feeding_;
};

// What a look at a thread tells, in order. Who waits for another process does not wait for a thread that sleeps in code
// of its own; one that has the interpreter may keep it from going on.
constexpr int kOtherWaits = 0, kMainWaits = 1, kOtherIsAtIt = 2, kMainWaitsForProcess = 3, kOtherHasInterpreter = 4,
              kMainIsAtIt = 5;

struct ThreadTrack {
  std::span<const ListRow> rows;
  bool main;
};

struct ToldLook {
  ListRow look;
  int tells;
  std::size_t thread;
};

// Of what threads tell at one instant, what tells most first: one look for each instant.
class Chosen {
 public:
  Chosen(Kinds& kinds, std::vector<std::uint64_t>& counts) : kinds_(kinds), counts_(counts) {}
  void add(const ToldLook& one) {
    if (looks_.empty() || looks_.back().at != one.look.at) {
      finish();
      looks_.push_back(one.look);
      first_ = one.tells;
      alike_.assign(1, one.look.list);
      main_waits_.reset();
    } else if (first_ == kMainIsAtIt && one.tells >= kOtherIsAtIt) {
      beside_.resize(looks_.size());
      if (beside_.back().kind == BesideMain::kNobody)
        beside_.back() = {kinds_.of(one.look.list), one.tells == kOtherHasInterpreter};
    } else if (first_ == kOtherIsAtIt && one.tells == kOtherIsAtIt) {
      alike_.push_back(one.look.list);
    } else if (one.tells == kMainWaits && first_ >= kOtherIsAtIt) {
      main_waits_ = one.look.list;
    }
  }
  [[nodiscard]] ProcessLooks take() {
    finish();
    if (!beside_.empty()) beside_.resize(looks_.size());
    return {std::move(looks_), std::move(beside_)};
  }

 private:
  void finish() {
    if (looks_.empty()) return;
    ListId& list = looks_.back().list;
    if (alike_.size() > 1) list = kinds_.one_of(alike_);
    if (main_waits_ && kinds_.waits_for_thread(*main_waits_)) list = kinds_.feeding(list, kinds_.of(*main_waits_));
    if (list >= counts_.size()) counts_.resize(list + 1);
    ++counts_[list];
  }

  Kinds& kinds_;
  std::vector<std::uint64_t>& counts_;
  std::vector<ListRow> looks_;
  std::vector<BesideMain> beside_;
  std::vector<ListId> alike_;  // of the last instant: threads that tell as much as its first
  int first_ = 0;              // what that tells
  std::optional<ListId> main_waits_;
};

// Counts the looks of the only thread of a process, by list. False, and none counted: they are not one for each
// instant.
bool count_looks(std::span<const ListRow> rows, Kinds& kinds, std::vector<std::uint64_t>& counts) {
  Nanos last = std::numeric_limits<Nanos>::min();
  for (const ListRow& row : rows) {
    if (row.list == kNoList || row.at <= last) {
      for (const ListRow& counted : rows.first(static_cast<std::size_t>(&row - rows.data()))) --counts[counted.list];
      return false;
    }
    last = row.at;
    if (counts[row.list]++ == 0) (void)kinds.of(row.list);
  }
  return true;
}

// Whoever has the interpreter now and then while the main thread waits need not be what that waits for: one that has it
// for most of that time is.
void doubt_rare_holders(std::vector<ToldLook>& told) {
  std::map<std::size_t, std::size_t> held;  // by thread: instants
  std::size_t waits = 0;
  for (auto first = told.begin(); first != told.end();) {
    const auto last =
        std::find_if(first, told.end(), [&](const ToldLook& one) { return one.look.at != first->look.at; });
    if (first->tells != kMainIsAtIt) {
      ++waits;
      if (first->tells == kOtherHasInterpreter) ++held[first->thread];
    }
    first = last;
  }
  bool main_waits = false;
  for (std::size_t i = 0; i < told.size(); ++i) {
    if (i == 0 || told[i].look.at != told[i - 1].look.at) main_waits = told[i].tells != kMainIsAtIt;
    if (main_waits && told[i].tells == kOtherHasInterpreter && 2 * held[told[i].thread] < waits)
      told[i].tells = kOtherIsAtIt;
  }
}

// The main thread; while it only waits, another one that does not: the one that has the interpreter, if any does.
ProcessLooks looks_of(const std::vector<ThreadTrack>& threads, Kinds& kinds, const StackView& view,
                      std::vector<std::uint64_t>& counts) {
  if (threads.size() == 1 && count_looks(threads[0].rows, kinds, counts)) return ProcessLooks(threads[0].rows);
  std::vector<ToldLook> told;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    const ThreadTrack& thread = threads[i];
    for (const ListRow& row : thread.rows) {
      if (row.list == kNoList) continue;
      const std::uint32_t kind = kinds.of(row.list);
      const int others = row.value == kHoldsTheGil ? kOtherHasInterpreter : kOtherIsAtIt;
      const int main_waits = view.kinds[kind].of_processes ? kMainWaitsForProcess : kMainWaits;
      const int waits = thread.main ? main_waits : kOtherWaits;
      told.push_back({row, view.kinds[kind].waits ? waits : thread.main ? kMainIsAtIt : others, i});
    }
  }
  std::stable_sort(told.begin(), told.end(), [](const ToldLook& x, const ToldLook& y) {
    return x.look.at != y.look.at ? x.look.at < y.look.at : x.tells > y.tells;
  });
  doubt_rare_holders(told);
  Chosen chosen(kinds, counts);
  for (const ToldLook& one : told) chosen.add(one);
  return chosen.take();
}

}  // namespace

StackView stack_view(const Recording& recording, const stacks::Families& families) {
  StackView view;
  std::map<SourceId, std::vector<ThreadTrack>> threads;
  for (const SourceId id : recording.all(SourceKind::kPythonThread)) {
    const Source& source = recording.sources[static_cast<std::size_t>(id)];
    const auto main = source.attrs.find("main");
    const std::vector<ListRow>& rows = recording.tracks[static_cast<std::size_t>(id)].lists;
    if (source.parent != kNoSource && !rows.empty())
      threads[source.parent].push_back({rows, main != source.attrs.end() && main->second == "true"});
  }
  Kinds kinds(recording, families, view);
  std::vector<std::uint64_t> counts(recording.lists.size());
  for (const auto& [process, list] : threads) view.looks.emplace(process, looks_of(list, kinds, view, counts));
  kinds.name_callers(counts);
  view.count.resize(view.kinds.size());
  for (ListId list = 0; list < counts.size(); ++list)
    if (counts[list] > 0) view.count[view.kind_of_list[list]] += static_cast<double>(counts[list]);
  return view;
}

std::size_t count_until(std::span<const ListRow> looks, Nanos at) {
  return count_until(looks, at, [](const ListRow& look) { return look.at; });
}

std::span<const ListRow> looks_within(std::span<const ListRow> looks, Nanos begin, Nanos end) {
  const std::size_t first = count_until(looks, begin);
  // Mostly they are few: the end is looked for from the begin on.
  std::size_t low = first, high = first;
  for (std::size_t step = 8; high < looks.size() && looks[high].at <= end; step *= 2)
    low = high, high = std::min(high + step, looks.size());
  const auto last = std::upper_bound(looks.begin() + static_cast<std::ptrdiff_t>(low),
                                     looks.begin() + static_cast<std::ptrdiff_t>(high), end,
                                     [](Nanos when, const ListRow& look) { return when < look.at; });
  return looks.subspan(first, static_cast<std::size_t>(last - looks.begin()) - first);
}

std::array<double, 4> idle_by_busy(const StackView& view, std::span<const ListRow> looks, const IdleTime& device,
                                   const UtilSample& reading) {
  if (busy_ns(reading) == 0) return {1, 1, 1, 1};
  const Nanos middle = reading.begin + (reading.end - reading.begin) / 2;
  const Nanos begin = std::min(reading.begin, middle - kAround), end = std::max(reading.end, middle + kAround);
  const auto around = looks_within(looks, begin, end);
  std::array<std::size_t, 4> looks_of{};
  for (const ListRow& look : around) ++looks_of[static_cast<std::size_t>(view.busy_of_list[look.list])];
  std::array<double, 4> all{}, idle_of{};
  std::copy(looks_of.begin(), looks_of.end(), all.begin());
  const double idle = device.share(begin, end), count = static_cast<double>(around.size());
  double left = idle * count;
  for (std::size_t i = 0; i < all.size(); ++i) {
    // That it runs dry while it waits for kernels takes more than an accident of sampling (two standard errors).
    const bool last = i + 1 == all.size();
    if (last && all[i] < count && left <= 2 * std::sqrt(count * idle * (1 - idle))) break;
    const double taken = std::min(all[i], left);
    idle_of[i] = all[i] > 0 ? taken / all[i] : 0;
    left -= taken;
  }
  return idle_of;
}

// Asked once for each of its answers, and not at all where no stack needs it.
class Stacks::Counted {
 public:
  Counted(const ProcessCounters& counters, const IdleStretch& stretch) : counters_(counters), stretch_(stretch) {}
  [[nodiscard]] const std::optional<HostClaim>& operator()(bool with_helpers, bool may_write = true) {
    auto& answer = answers_[(with_helpers ? 1U : 0U) + (may_write ? 2U : 0U)];
    if (!answer) answer = counters_.claim_whole(stretch_, with_helpers, may_write);
    return *answer;
  }

 private:
  const ProcessCounters& counters_;
  const IdleStretch& stretch_;
  std::array<std::optional<std::optional<HostClaim>>, 4> answers_;
};

namespace {

bool names_writing(Family family) { return family == Family::kCheckpoint || family == Family::kWrite; }

}  // namespace

// What wrote is seen while the process writes and hardly ever else; what is seen as often without it did not write.
// That says something only where there is a stack that can have written, by its name or by when it was seen.
void Stacks::find_writers(const IdleStretch& stretch) const {
  constexpr double kTelling = 5;  // looks that would be seen beside writing if it had no part in that
  const SourceId process = *stretch.use.context.process;
  if (writers_.process == process) return;
  writers_ = {process, {}, {}};
  if (!stretch.use.host.owner) return;
  const std::vector<Activity>& owner = *stretch.use.host.owner;
  const auto writes_in = [&](const Activity& activity) { return counters_.writes(owner, activity); };
  if (std::none_of(owner.begin(), owner.end(), writes_in)) return;  // counters never say that it writes
  const auto all = view_.looks.at(process).all();
  std::vector<double> writing(view_.kinds.size()), beside(view_.kinds.size()), away(view_.kinds.size());
  double writing_ns = 0, rest_ns = 0;
  for (const Activity& activity : owner) {
    const bool writes = writes_in(activity);
    (writes ? writing_ns : rest_ns) += static_cast<double>(activity.end - activity.begin);
    std::vector<double>& looks = writes ? writing : beside;
    for (const ListRow& look : looks_within(all, activity.begin, activity.end)) {
      const std::uint32_t kind = view_.number_of(look);
      looks[kind] += 1;
      if (writes && look.value != kHoldsTheGil) away[kind] += 1;
    }
  }
  std::vector<bool> cannot(view_.kinds.size()), go_with_it(view_.kinds.size());
  bool any = false;
  for (std::size_t kind = 0; kind < cannot.size(); ++kind) {
    cannot[kind] = beside[kind] > 0 && 2 * beside[kind] * writing_ns >= writing[kind] * rest_ns;
    go_with_it[kind] =
        !cannot[kind] && writing[kind] * rest_ns >= kTelling * writing_ns && 2 * away[kind] >= writing[kind];
    const Family family = view_.kinds[kind].family;
    const bool here = writing[kind] + beside[kind] > 0;
    any |= (names_writing(family) && here) || (family == Family::kNone && !cannot[kind] && writing[kind] > 0);
  }
  if (any) writers_.cannot = std::move(cannot), writers_.go_with_it = std::move(go_with_it);
}

// `named`: one of the stacks of this time is known to write. Then another one did so only if all speaks for it: what
// saves a model may wait for the disk itself (fsync) once torch.save has returned.
bool Stacks::may_write(std::uint32_t kind, const IdleStretch& stretch, bool named) const {
  if (stretch.part != UsePart::kBetween) return true;
  find_writers(stretch);
  if (named) return !writers_.go_with_it.empty() && writers_.go_with_it[kind];
  return writers_.cannot.empty() || !writers_.cannot[kind];
}

namespace {

// What was read says of a stack that it read only if that is seen more often then than in the seconds around: a library
// that is loaded late, or a page that comes back, is read beside any code.
bool may_read(const StackView& view, std::uint32_t number, const IdleStretch& stretch) {
  constexpr Nanos kNear = 2 * kSecond;
  const std::vector<Activity>* owner = stretch.use.host.owner;
  const Activity* now = owner ? activity_at(*owner, stretch.begin + (stretch.end - stretch.begin + 1) / 2) : nullptr;
  if (!now || !now->read_bytes_per_second || now->io_delay || now->state == 'D' || now->wait == WaitChannel::kDisk ||
      now->wait == WaitChannel::kNetworkFs)
    return true;  // the kernel itself says what it waited for
  const auto all = view.looks.at(*stretch.use.context.process).all();
  double reading = 0, beside = 0, reading_ns = 0, rest_ns = 0;
  auto one = std::partition_point(owner->begin(), owner->end(),
                                  [&](const Activity& activity) { return activity.end <= now->begin - kNear; });
  for (; one != owner->end() && one->begin < now->end + kNear; ++one) {
    const bool reads = 2 * one->read_bytes_per_second.value_or(0) >= *now->read_bytes_per_second;
    (reads ? reading_ns : rest_ns) += static_cast<double>(one->end - one->begin);
    for (const ListRow& look : looks_within(all, one->begin, one->end))
      if (view.number_of(look) == number) (reads ? reading : beside) += 1;
  }
  return beside == 0 || 2 * beside * reading_ns < reading * rest_ns;
}

}  // namespace

HostClaim Stacks::claim_of(std::uint32_t number, const IdleStretch& stretch, bool sure, bool may_write,
                           Counted& counted) const {
  const stacks::StackKind& kind = view_.kinds[number];
  HostClaim claim{.account = stacks::info(kind.family).account,
                  .confidence = sure ? Confidence::kHigh : Confidence::kMedium,
                  .tiers = "Y",
                  .where = kind.where};
  switch (stretch.part) {
    case UsePart::kStartup:
      claim.account = Account::kStartup;
      return claim;
    case UsePart::kTail:
      if (claim.account == Account::kCheckpoint || claim.account == Account::kValidationHost) return claim;
      claim.account = stretch.use.hung ? Account::kHung : Account::kTeardown;
      if (const auto& other = counted(!kind.own); other && !stretch.use.hung)
        claim.account = other->account, claim.tiers = "PY";
      return claim;
    case UsePart::kBetween:
      break;
  }
  if (claim.account != Account::kUnexplained) return claim;
  const auto& other = counted(!kind.own, may_write);
  if (view_.for_peers.contains({*stretch.use.context.process, number}) &&
      !(other && other->account == Account::kInput)) {
    claim.account = Account::kPeers;
    claim.confidence = Confidence::kMedium;
    return claim;
  }
  const bool knows = other && other->account != Account::kUnexplained &&
                     !(kind.own && other->account == Account::kInput && !may_read(view_, number, stretch));
  claim.account = knows ? other->account : Account::kHostCode;
  claim.confidence = knows ? std::max(other->confidence, claim.confidence) : Confidence::kMedium;
  claim.tiers = knows ? "PY" : "Y";
  return claim;
}

// In order of their first look.
void Stacks::find_shares(std::span<const ListRow> looks, const std::array<double, 4>& idle_of,
                         std::vector<Share>& shares) const {
  shares.clear();
  place_of_kind_.resize(view_.kinds.size());
  for (const ListRow& look : looks) {
    const double weight = idle_of[static_cast<std::size_t>(view_.busy_of_list[look.list])];
    if (weight <= 0) continue;
    const std::uint32_t kind = view_.number_of(look);
    std::uint32_t& place = place_of_kind_[kind];  // of an earlier call, maybe
    if (place < shares.size() && shares[place].kind == kind) {
      shares[place].weight += weight;
    } else {
      place = static_cast<std::uint32_t>(shares.size());
      shares.push_back({kind, weight});
    }
  }
}

namespace {

// Whether a stack names a checkpoint, or that it writes, in the time that the process's counters of this stretch are
// of: what these say was written, that wrote.
bool names_what_writes(const StackView& view, const IdleStretch& stretch) {
  const std::vector<Activity>* owner = stretch.use.host.owner;
  const Activity* now = owner ? activity_at(*owner, stretch.begin + (stretch.end - stretch.begin + 1) / 2) : nullptr;
  if (!now) return false;
  const auto looks = looks_within(view.looks.at(*stretch.use.context.process).all(), now->begin, now->end);
  return std::any_of(looks.begin(), looks.end(),
                     [&](const ListRow& look) { return names_writing(view.kind_of(look).family); });
}

}  // namespace

// The rounding remainder goes to the last.
void Stacks::add(const IdleStretch& stretch, const std::vector<Share>& shares, bool sure,
                 std::vector<HostShare>& out) const {
  double all = 0, before = 0;
  for (const Share& share : shares) all += share.weight;
  const auto length = static_cast<double>(stretch.end - stretch.begin);
  Counted counted(counters_, stretch);
  const bool named = stretch.part == UsePart::kBetween &&
                     (std::any_of(shares.begin(), shares.end(),
                                  [&](const Share& s) { return names_writing(view_.kinds[s.kind].family); }) ||
                      names_what_writes(view_, stretch));
  Nanos given = 0;
  for (const Share& share : shares) {
    before += share.weight;
    const Nanos until = &share == &shares.back() ? stretch.end - stretch.begin : std::llround(length * before / all);
    out.push_back({until - given, claim_of(share.kind, stretch, sure, may_write(share.kind, stretch, named), counted)});
    given = until;
  }
}

namespace {

// Whether nothing of Python was seen for long around this time, as at a prompt or in a loop of a library's own: what
// was seen before and after says nothing of it.
bool unseen(std::span<const ListRow> looks, Nanos begin, Nanos end) {
  constexpr std::size_t kNear = 16;
  constexpr Nanos kMissed = 8;  // looks in a row: one or two are torn
  const std::size_t next = count_until(looks, begin);
  if (next == looks.size() || looks[next].at <= end) return false;
  std::vector<Nanos> gaps;
  for (std::size_t i = next - std::min(next, kNear); i + 1 < std::min(looks.size(), next + kNear); ++i)
    gaps.push_back(looks[i + 1].at - looks[i].at);
  if (gaps.empty()) return false;
  const auto usual = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
  std::nth_element(gaps.begin(), usual, gaps.end());
  return looks[next].at - (next == 0 ? begin : looks[next - 1].at) > kMissed * *usual;
}

}  // namespace

const std::vector<Stacks::Share>& Stacks::mixture_of(const IdleStretch& stretch, std::span<const ListRow> looks,
                                                     const UtilSample& reading) const {
  const Nanos from = std::max(reading.begin, stretch.use.first_kernel), begin = std::min(from, stretch.begin);
  const Nanos end = std::max(std::min(reading.end, stretch.use.last_kernel), stretch.end);
  const SourceId process = *stretch.use.context.process;
  if (last_.device == &stretch.device && last_.reading == &reading && last_.process == process &&
      last_.begin == begin && last_.end == end)
    return last_.shares;
  const auto idle_of = idle_by_busy(view_, looks, stretch.device, reading);
  last_.device = &stretch.device;
  last_.reading = &reading;
  last_.process = process;
  last_.begin = begin;
  last_.end = end;
  find_shares(looks_within(looks, begin, end), idle_of, last_.shares);
  if (last_.shares.empty() && !unseen(looks, begin, end))  // none of the reading's own could be idle
    find_shares(looks_within(looks, from - kAround, end + kAround), idle_of, last_.shares);
  return last_.shares;
}

namespace {

// Until shortly after the last look: once Python has ended in a process, it has no stack.
Nanos python_until(std::span<const ListRow> looks) {
  constexpr std::size_t kSome = 10;
  const auto last = looks.last(std::min(looks.size(), kSome));
  if (last.size() < 2) return std::numeric_limits<Nanos>::max();
  const Nanos apart = (last.back().at - last.front().at) / static_cast<Nanos>(last.size() - 1);
  return last.back().at + 2 * apart;
}

}  // namespace

void Stacks::cut(const Use& use, std::vector<Nanos>& cuts) const {
  last_ = {}, writers_ = {};
  if (!use.context.process) return;
  if (const auto known = view_.looks.find(*use.context.process); known != view_.looks.end())
    cuts.push_back(python_until(known->second.all()));
}

void Stacks::claim(const IdleStretch& stretch, std::vector<HostShare>& parts) const {
  if (!stretch.use.context.process) return;
  const auto known = view_.looks.find(*stretch.use.context.process);
  if (known == view_.looks.end()) return;
  const std::span<const ListRow> all = known->second.all();
  if (stretch.part != UsePart::kStartup && stretch.begin >= python_until(all)) return;
  if (stretch.part == UsePart::kBetween) {
    const auto& samples = stretch.device.samples();
    const Nanos middle = stretch.begin + (stretch.end - stretch.begin) / 2;
    const std::size_t number = stretch.device.at(middle);
    if (number == samples.size()) return;
    const std::vector<Share>& shares = mixture_of(stretch, all, samples[number]);
    if (!shares.empty()) add(stretch, shares, busy_ns(samples[number]) == 0, parts);
    return;
  }
  // Blocks in which nobody looked take what the one before them was at; those before the first look take that.
  std::vector<std::vector<Share>> blocks;
  for (Nanos begin = stretch.begin; begin < stretch.end; begin += kBlock) {
    std::vector<Share> here;
    find_shares(looks_within(all, begin, std::min(begin + kBlock, stretch.end)), {1, 1, 1, 1}, here);
    if (here.empty() && !blocks.empty()) here = blocks.back();
    blocks.push_back(std::move(here));
  }
  const auto first = std::find_if(blocks.begin(), blocks.end(), [](const auto& block) { return !block.empty(); });
  if (first == blocks.end()) return;
  std::fill(blocks.begin(), first, *first);
  Nanos begin = stretch.begin;
  for (const auto& block : blocks) {
    const Nanos end = std::min(begin + kBlock, stretch.end);
    add({stretch.use, stretch.part, begin, end, stretch.device}, block, true, parts);
    begin = end;
  }
}

}  // namespace headroom
