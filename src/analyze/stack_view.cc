// SPDX-License-Identifier: Apache-2.0
#include "analyze/stack_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <tuple>

#include "base/steady.h"
#include "model/places.h"

namespace headroom {

namespace {

using stacks::Family;

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

  // Which functions hold nearly all of what one process does.
  void name_what_holds_all(const std::vector<std::uint64_t>& counts) {
    constexpr double kNearlyAll = 0.9;
    std::map<std::string, double> looks_in;
    double all = 0;
    for (ListId list = 0; list < recording_.lists.size(); ++list) {
      if (counts[list] == 0 || view_.kinds[view_.kind_of_list[list]].family == Family::kImport) continue;
      all += static_cast<double>(counts[list]);
      for (const std::string& function : stacks::users_functions(frames_of(list)))
        looks_in[function] += static_cast<double>(counts[list]);
    }
    for (const auto& [function, looks] : looks_in)
      if (looks >= kNearlyAll * all) view_.hold_all.insert(function);
  }

  // The functions further out, once all places have their names.
  void name_holders(const std::vector<std::uint64_t>& counts) {
    for (ListId list = 0; list < recording_.lists.size(); ++list) {
      if (counts[list] == 0) continue;
      const stacks::StackKind& kind = view_.kinds[view_.kind_of_list[list]];
      if (kind.busy == stacks::Busy::kWaitsForKernels) continue;
      std::map<std::string, double>& held = view_.held_by[kind.where];
      held[""] += static_cast<double>(counts[list]);
      for (const std::string& function : stacks::users_functions(frames_of(list)))
        if (function != function_of(kind.where)) held[function] += static_cast<double>(counts[list]);
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

  std::span<const stacks::Frame> frames_of(ListId list) {
    frames_.clear();
    for (const TextId text : recording_.lists[list]) frames_.push_back(stacks::frame_of(recording_.texts[text]));
    return frames_;
  }

  stacks::StackKind read(ListId list) { return families_.kind_of(frames_of(list)); }

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

int told_by(const ListRow& row, bool main, const stacks::StackKind& kind) {
  if (main && !kind.waits) return kMainIsAtIt;
  if (main) return kind.of_processes ? kMainWaitsForProcess : kMainWaits;
  if (kind.waits) return kOtherWaits;
  return row.value == kHoldsTheGil ? kOtherHasInterpreter : kOtherIsAtIt;
}

// The main thread; while it only waits, another one that does not: the one that has the interpreter, if any does.
ProcessLooks looks_of(const std::vector<ThreadTrack>& threads, Kinds& kinds, const StackView& view,
                      std::vector<std::uint64_t>& counts) {
  if (threads.size() == 1 && count_looks(threads[0].rows, kinds, counts)) return ProcessLooks(threads[0].rows);
  std::vector<ToldLook> told;
  for (std::size_t i = 0; i < threads.size(); ++i)
    for (const ListRow& row : threads[i].rows)
      if (row.list != kNoList) told.push_back({row, told_by(row, threads[i].main, view.kinds[kinds.of(row.list)]), i});
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
  for (const auto& [process, list] : threads) {
    std::vector<std::uint64_t> of_one(recording.lists.size());
    view.looks.emplace(process, looks_of(list, kinds, view, of_one));
    kinds.name_what_holds_all(of_one);
    counts.resize(std::max(counts.size(), of_one.size()));
    std::transform(of_one.begin(), of_one.end(), counts.begin(), counts.begin(), std::plus<>());
  }
  kinds.name_callers(counts);
  kinds.name_holders(counts);
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

}  // namespace headroom
