// SPDX-License-Identifier: Apache-2.0
#include "analyze/stack_evidence.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace headroom {

namespace {

using stacks::Family;

constexpr Nanos kAround = kSecond;
constexpr Nanos kBlock = kSecond;         // before the first kernel and after the last: of so much one mixture
constexpr std::int64_t kHoldsTheGil = 1;  // ListRow::value of a python_thread

// The kinds of the stacks of a recording, each once.
class Kinds {
 public:
  Kinds(const Recording& recording, const stacks::Families& families, std::vector<stacks::StackKind>& kinds)
      : recording_(recording), families_(families), kinds_(kinds), of_list_(recording.lists.size(), kNone) {}

  std::uint32_t of(ListId list) {
    std::uint32_t& known = of_list_[list];
    if (known != kNone) return known;
    frames_.clear();
    for (const TextId text : recording_.lists[list]) frames_.push_back(stacks::frame_of(recording_.texts[text]));
    stacks::StackKind kind = families_.kind_of(frames_);
    const auto [same, is_new] =
        numbers_.try_emplace(std::tuple(kind.family, kind.within, kind.own, kind.busy, kind.where, kind.waits,
                                        kind.of_processes, kind.for_child),
                             kinds_.size());
    if (is_new) kinds_.push_back(std::move(kind));
    return known = static_cast<std::uint32_t>(same->second);
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  const Recording& recording_;
  const stacks::Families& families_;
  std::vector<stacks::StackKind>& kinds_;
  std::vector<std::uint32_t> of_list_;
  std::vector<stacks::Frame> frames_;
  std::map<std::tuple<Family, Family, bool, stacks::Busy, std::string, bool, bool, bool>, std::size_t> numbers_;
};

// What a look at a thread tells, in order.
constexpr int kOtherWaits = 0, kMainWaits = 1, kOtherIsAtIt = 2, kOtherHasInterpreter = 3, kMainIsAtIt = 4;

struct ThreadTrack {
  const std::vector<ListRow>* rows;
  bool main;
};

struct Told {
  StackLook look;
  int tells;
};

// Of what threads tell at one instant, what tells most first: one look for each instant.
class Looks {
 public:
  void add(const Told& one) {
    if (looks_.empty() || looks_.back().at != one.look.at) {
      looks_.push_back(one.look);
      main_ = one.tells == kMainIsAtIt;
    } else if (main_ && !looks_.back().beside && one.tells >= kOtherIsAtIt) {
      looks_.back().beside = one.look.kind;
      looks_.back().beside_has_interpreter = one.tells == kOtherHasInterpreter;
    }
  }
  void reserve(std::size_t count) { looks_.reserve(count); }
  [[nodiscard]] std::vector<StackLook> take() { return std::move(looks_); }

 private:
  std::vector<StackLook> looks_;
  bool main_ = false;
};

// The main thread; while it only waits, another one that does not: the one that has the interpreter, if any does.
std::vector<StackLook> looks_of(const std::vector<ThreadTrack>& threads, Kinds& kinds,
                                const std::vector<stacks::StackKind>& all) {
  const auto told_by = [&](const ThreadTrack& thread, const ListRow& row) {
    const std::uint32_t kind = kinds.of(row.list);
    const int others = row.value == kHoldsTheGil ? kOtherHasInterpreter : kOtherIsAtIt;
    const int tells = all[kind].waits ? (thread.main ? kMainWaits : kOtherWaits) : thread.main ? kMainIsAtIt : others;
    return Told{{.at = row.at, .kind = kind, .list = row.list}, tells};
  };
  Looks looks;
  if (threads.size() == 1) {  // most programs: in order as it is
    looks.reserve(threads[0].rows->size());
    for (const ListRow& row : *threads[0].rows)
      if (row.list != kNoList) looks.add(told_by(threads[0], row));
    return looks.take();
  }
  std::vector<Told> told;
  for (const ThreadTrack& thread : threads)
    for (const ListRow& row : *thread.rows)
      if (row.list != kNoList) told.push_back(told_by(thread, row));
  std::stable_sort(told.begin(), told.end(), [](const Told& x, const Told& y) {
    return x.look.at != y.look.at ? x.look.at < y.look.at : x.tells > y.tells;
  });
  for (const Told& one : told) looks.add(one);
  return looks.take();
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
      threads[source.parent].push_back({&rows, main != source.attrs.end() && main->second == "true"});
  }
  Kinds kinds(recording, families, view.kinds);
  for (const auto& [process, list] : threads) view.looks[process] = looks_of(list, kinds, view.kinds);
  return view;
}

std::vector<StackLook>::const_iterator first_after(const std::vector<StackLook>& looks, Nanos at) {
  if (looks.empty() || at < looks.front().at) return looks.begin();
  if (at >= looks.back().at) return looks.end();
  const double begin = static_cast<double>(looks.front().at), length = static_cast<double>(looks.back().at) - begin;
  const double part = (static_cast<double>(at) - begin) / length;
  std::size_t low = std::min(static_cast<std::size_t>(part * static_cast<double>(looks.size() - 1)), looks.size() - 1);
  std::size_t high = low;  // looks before `low` are not later, the one at `high` is
  for (std::size_t step = 1; looks[low].at > at; step *= 2) low -= std::min(low, step);
  for (std::size_t step = 1; looks[high].at <= at; step *= 2) high = std::min(high + step, looks.size() - 1);
  return std::upper_bound(looks.begin() + static_cast<std::ptrdiff_t>(low),
                          looks.begin() + static_cast<std::ptrdiff_t>(high), at,
                          [](Nanos when, const StackLook& look) { return when < look.at; });
}

std::span<const StackLook> looks_within(const std::vector<StackLook>& looks, Nanos begin, Nanos end) {
  const auto first = first_after(looks, begin);
  return {first, std::max(first, first_after(looks, end))};
}

std::array<double, 4> idle_by_busy(const StackView& view, const std::vector<StackLook>& looks, const IdleTime& device,
                                   const UtilSample& reading) {
  if (busy_ns(reading) == 0) return {1, 1, 1, 1};
  const Nanos middle = reading.begin + (reading.end - reading.begin) / 2;
  const Nanos begin = std::min(reading.begin, middle - kAround), end = std::max(reading.end, middle + kAround);
  const auto around = looks_within(looks, begin, end);
  std::array<double, 4> all{}, idle_of{};
  for (const StackLook& look : around) all[static_cast<std::size_t>(view.kinds[look.kind].busy)] += 1;
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

std::vector<Stacks::Share> Stacks::shares_of(std::span<const StackLook> looks,
                                             const std::array<double, 4>& idle_of) const {
  std::vector<Share> shares;  // in order of their first look
  for (const StackLook& look : looks) {
    const double weight = idle_of[static_cast<std::size_t>(view_.kinds[look.kind].busy)];
    const auto same =
        std::find_if(shares.begin(), shares.end(), [&](const Share& share) { return share.kind == look.kind; });
    if (same != shares.end())
      same->weight += weight;
    else if (weight > 0)
      shares.push_back({look.kind, weight});
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
  if (stretch.part == UsePart::kBetween) {
    const auto& samples = stretch.device.samples();
    const Nanos middle = stretch.begin + (stretch.end - stretch.begin) / 2;
    const auto reading = std::upper_bound(samples.begin(), samples.end(), middle,
                                          [](Nanos at, const UtilSample& sample) { return at < sample.end; });
    if (reading == samples.end()) return claims;
    const Nanos begin = std::max(reading->begin, stretch.use.first_kernel);
    const Nanos end = std::max(std::min(reading->end, stretch.use.last_kernel), stretch.end);
    const auto idle_of = idle_by_busy(view_, known->second, stretch.device, *reading);
    const auto looks = looks_within(known->second, std::min(begin, stretch.begin), end);
    auto shares = shares_of(looks, idle_of);
    if (shares.empty())  // none of the reading's own could be idle
      shares = shares_of(looks_within(known->second, begin - kAround, end + kAround), idle_of);
    if (!shares.empty()) add(stretch, shares, busy_ns(*reading) == 0, claims);
    return claims;
  }
  // Blocks in which nobody looked take what the one before them was at; those before the first look take that.
  std::vector<Share> shares;
  std::vector<std::vector<Share>> blocks;
  for (Nanos begin = stretch.begin; begin < stretch.end; begin += kBlock) {
    auto here = shares_of(looks_within(known->second, begin, std::min(begin + kBlock, stretch.end)), {1, 1, 1, 1});
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
