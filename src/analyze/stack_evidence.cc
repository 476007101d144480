// SPDX-License-Identifier: Apache-2.0
#include "analyze/stack_evidence.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/steady.h"

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
  }

  std::uint32_t of(ListId list) {
    const std::uint32_t known = view_.kind_of_list[list];
    return known != kNone ? known : make(list);
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint32_t make(ListId list) {
    frames_.clear();
    for (const TextId text : recording_.lists[list]) frames_.push_back(stacks::frame_of(recording_.texts[text]));
    stacks::StackKind kind = families_.kind_of(frames_);
    view_.busy_of_list[list] = kind.busy;
    const auto [same, is_new] =
        numbers_.try_emplace(std::tuple(kind.family, kind.within, kind.own, kind.busy, kind.where, kind.waits,
                                        kind.of_processes, kind.for_child),
                             view_.kinds.size());
    if (is_new) view_.kinds.push_back(std::move(kind));
    return view_.kind_of_list[list] = static_cast<std::uint32_t>(same->second);
  }

  const Recording& recording_;
  const stacks::Families& families_;
  StackView& view_;
  std::vector<stacks::Frame> frames_;
  std::map<std::tuple<Family, Family, bool, stacks::Busy, std::string, bool, bool, bool>, std::size_t> numbers_;
};

// What a look at a thread tells, in order.
constexpr int kOtherWaits = 0, kMainWaits = 1, kOtherIsAtIt = 2, kOtherHasInterpreter = 3, kMainIsAtIt = 4;

struct ThreadTrack {
  std::span<const ListRow> rows;
  bool main;
};

struct Told {
  ListRow look;
  int tells;
};

// Of what threads tell at one instant, what tells most first: one look for each instant.
class Chosen {
 public:
  Chosen(Kinds& kinds, std::vector<double>& counts) : kinds_(kinds), counts_(counts) {}
  void add(const Told& one) {
    if (looks_.empty() || looks_.back().at != one.look.at) {
      looks_.push_back(one.look);
      counts_[one.look.list] += 1;
      main_ = one.tells == kMainIsAtIt;
    } else if (main_ && one.tells >= kOtherIsAtIt) {
      beside_.resize(looks_.size());
      if (beside_.back().kind == BesideMain::kNobody)
        beside_.back() = {kinds_.of(one.look.list), one.tells == kOtherHasInterpreter};
    }
  }
  [[nodiscard]] ProcessLooks take() {
    if (!beside_.empty()) beside_.resize(looks_.size());
    return {std::move(looks_), std::move(beside_)};
  }

 private:
  Kinds& kinds_;
  std::vector<double>& counts_;
  std::vector<ListRow> looks_;
  std::vector<BesideMain> beside_;
  bool main_ = false;
};

// Counts the looks of the only thread of a process, by list. False, and none counted: they are not one for each
// instant.
bool count_looks(std::span<const ListRow> rows, Kinds& kinds, std::vector<double>& counts) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].list == kNoList || (i > 0 && rows[i].at <= rows[i - 1].at)) {
      for (const ListRow& row : rows.first(i)) counts[row.list] -= 1;
      return false;
    }
    if (counts[rows[i].list] == 0) (void)kinds.of(rows[i].list);
    counts[rows[i].list] += 1;
  }
  return true;
}

// The main thread; while it only waits, another one that does not: the one that has the interpreter, if any does.
ProcessLooks looks_of(const std::vector<ThreadTrack>& threads, Kinds& kinds, const StackView& view,
                      std::vector<double>& counts) {
  if (threads.size() == 1 && count_looks(threads[0].rows, kinds, counts)) return ProcessLooks(threads[0].rows);
  std::vector<Told> told;
  for (const ThreadTrack& thread : threads)
    for (const ListRow& row : thread.rows) {
      if (row.list == kNoList) continue;
      const std::uint32_t kind = kinds.of(row.list);
      const int others = row.value == kHoldsTheGil ? kOtherHasInterpreter : kOtherIsAtIt;
      const int waits = thread.main ? kMainWaits : kOtherWaits;
      told.push_back({row, view.kinds[kind].waits ? waits : thread.main ? kMainIsAtIt : others});
    }
  std::stable_sort(told.begin(), told.end(), [](const Told& x, const Told& y) {
    return x.look.at != y.look.at ? x.look.at < y.look.at : x.tells > y.tells;
  });
  Chosen chosen(kinds, counts);
  for (const Told& one : told) chosen.add(one);
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
  std::vector<double> counts(recording.lists.size());
  for (const auto& [process, list] : threads) view.looks.emplace(process, looks_of(list, kinds, view, counts));
  view.count.resize(view.kinds.size());
  for (ListId list = 0; list < counts.size(); ++list)
    if (counts[list] > 0) view.count[view.kind_of_list[list]] += counts[list];
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

HostClaim Stacks::claim_of(std::uint32_t number, const IdleStretch& stretch, bool sure) const {
  const stacks::StackKind& kind = view_.kinds[number];
  HostClaim claim{.account = stacks::info(kind.family).account,
                  .confidence = sure ? Confidence::kHigh : Confidence::kMedium,
                  .tiers = "Y",
                  .where = kind.where};
  const auto counted = [&] { return counters_.claim_whole(stretch, !kind.own); };
  switch (stretch.part) {
    case UsePart::kStartup:
      claim.account = Account::kStartup;
      return claim;
    case UsePart::kTail:
      if (claim.account == Account::kCheckpoint || claim.account == Account::kValidationHost) return claim;
      claim.account = stretch.use.hung ? Account::kHung : Account::kTeardown;
      if (const auto other = counted(); other && !stretch.use.hung) claim.account = other->account, claim.tiers = "PY";
      return claim;
    case UsePart::kBetween:
      break;
  }
  if (claim.account != Account::kUnexplained) return claim;
  const auto other = counted();
  if (view_.for_peers.contains({*stretch.use.context.process, number}) &&
      !(other && other->account == Account::kInput)) {
    claim.account = Account::kPeers;
    claim.confidence = Confidence::kMedium;
    return claim;
  }
  const bool knows = other && other->account != Account::kUnexplained;
  claim.account = knows ? other->account : Account::kHostCode;
  claim.confidence = knows ? std::max(other->confidence, claim.confidence) : Confidence::kMedium;
  claim.tiers = knows ? "PY" : "Y";
  return claim;
}

std::vector<Stacks::Share> Stacks::shares_of(std::span<const ListRow> looks,
                                             const std::array<double, 4>& idle_of) const {
  std::vector<Share> shares;  // in order of their first look
  for (const ListRow& look : looks) {
    const double weight = idle_of[static_cast<std::size_t>(view_.busy_of_list[look.list])];
    if (weight <= 0) continue;
    const std::uint32_t kind = view_.number_of(look);
    const auto same =
        std::find_if(shares.begin(), shares.end(), [&](const Share& share) { return share.kind == kind; });
    if (same != shares.end())
      same->weight += weight;
    else
      shares.push_back({kind, weight});
  }
  return shares;
}

// The rounding remainder goes to the last.
void Stacks::add(const IdleStretch& stretch, const std::vector<Share>& shares, bool sure,
                 std::vector<HostShare>& out) const {
  double all = 0, before = 0;
  for (const Share& share : shares) all += share.weight;
  const auto length = static_cast<double>(stretch.end - stretch.begin);
  Nanos given = 0;
  for (const Share& share : shares) {
    before += share.weight;
    const Nanos until = &share == &shares.back() ? stretch.end - stretch.begin : std::llround(length * before / all);
    out.push_back({until - given, claim_of(share.kind, stretch, sure)});
    given = until;
  }
}

std::vector<HostShare> Stacks::claim(const IdleStretch& stretch) const {
  std::vector<HostShare> claims;
  if (!stretch.use.context.process) return claims;
  const auto known = view_.looks.find(*stretch.use.context.process);
  if (known == view_.looks.end()) return claims;
  const std::span<const ListRow> all = known->second.all();
  if (stretch.part == UsePart::kBetween) {
    const auto& samples = stretch.device.samples();
    const Nanos middle = stretch.begin + (stretch.end - stretch.begin) / 2;
    const std::size_t number = stretch.device.at(middle);
    if (number == samples.size()) return claims;
    const UtilSample* reading = &samples[number];
    const Nanos begin = std::max(reading->begin, stretch.use.first_kernel);
    const Nanos end = std::max(std::min(reading->end, stretch.use.last_kernel), stretch.end);
    const auto idle_of = idle_by_busy(view_, all, stretch.device, *reading);
    const auto looks = looks_within(all, std::min(begin, stretch.begin), end);
    auto shares = shares_of(looks, idle_of);
    if (shares.empty())  // none of the reading's own could be idle
      shares = shares_of(looks_within(all, begin - kAround, end + kAround), idle_of);
    if (!shares.empty()) add(stretch, shares, busy_ns(*reading) == 0, claims);
    return claims;
  }
  // Blocks in which nobody looked take what the one before them was at; those before the first look take that.
  std::vector<Share> shares;
  std::vector<std::vector<Share>> blocks;
  for (Nanos begin = stretch.begin; begin < stretch.end; begin += kBlock) {
    auto here = shares_of(looks_within(all, begin, std::min(begin + kBlock, stretch.end)), {1, 1, 1, 1});
    if (here.empty() && !blocks.empty()) here = blocks.back();
    blocks.push_back(std::move(here));
  }
  const auto first = std::find_if(blocks.begin(), blocks.end(), [](const auto& block) { return !block.empty(); });
  if (first == blocks.end()) return claims;
  std::fill(blocks.begin(), first, *first);
  Nanos begin = stretch.begin;
  for (const auto& block : blocks) {
    const Nanos end = std::min(begin + kBlock, stretch.end);
    add({stretch.use, stretch.part, begin, end, stretch.device}, block, true, claims);
    begin = end;
  }
  return claims;
}

}  // namespace headroom
