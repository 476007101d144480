// SPDX-License-Identifier: Apache-2.0
#include "analyze/stack_evidence.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace headroom {

namespace {

using stacks::Family;

constexpr Nanos kAround = kSecond;
constexpr Nanos kBlock = kSecond;  // before the first kernel and after the last: of so much one mixture

}  // namespace

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

// Looks at a process while it writes and while it does not, by kind.
struct LooksBesideWriting {
  std::vector<double> writing, away, beside;  // away: of `writing` those without the interpreter
  double writing_ns = 0, rest_ns = 0;

  explicit LooksBesideWriting(std::size_t kinds) : writing(kinds), away(kinds), beside(kinds) {}
  void add(const StackView& view, std::span<const ListRow> looks, const Activity& activity, bool writes) {
    (writes ? writing_ns : rest_ns) += static_cast<double>(activity.end - activity.begin);
    for (const ListRow& look : looks_within(looks, activity.begin, activity.end)) {
      const std::uint32_t kind = view.number_of(look);
      (writes ? writing : beside)[kind] += 1;
      if (writes && look.value != kHoldsTheGil) away[kind] += 1;
    }
  }
  [[nodiscard]] bool any(std::size_t kind) const { return writing[kind] + beside[kind] > 0; }
  [[nodiscard]] bool cannot_write(std::size_t kind) const {
    return beside[kind] > 0 && 2 * beside[kind] * writing_ns >= writing[kind] * rest_ns;
  }
  [[nodiscard]] bool goes_with_it(std::size_t kind) const {
    constexpr double kTelling = 5;  // looks that would be seen beside writing if it had no part in that
    return !cannot_write(kind) && writing[kind] * rest_ns >= kTelling * writing_ns && 2 * away[kind] >= writing[kind];
  }
};

}  // namespace

// What wrote is seen while the process writes and hardly ever else; what is seen as often without it did not write.
// That says something only where there is a stack that can have written, by its name or by when it was seen.
void Stacks::find_writers(const IdleStretch& stretch) const {
  const SourceId process = *stretch.use.context.process;
  if (writers_.process == process) return;
  writers_ = {process, {}, {}};
  if (!stretch.use.host.owner) return;
  const std::vector<Activity>& owner = *stretch.use.host.owner;
  const auto writes_in = [&](const Activity& activity) { return counters_.writes(owner, activity); };
  if (std::none_of(owner.begin(), owner.end(), writes_in)) return;  // counters never say that it writes
  const auto all = view_.looks.at(process).all();
  LooksBesideWriting looks(view_.kinds.size());
  for (const Activity& activity : owner) looks.add(view_, all, activity, writes_in(activity));
  Writers found{process, std::vector<bool>(view_.kinds.size()), std::vector<bool>(view_.kinds.size())};
  bool any = false;
  for (std::size_t kind = 0; kind < view_.kinds.size(); ++kind) {
    found.cannot[kind] = looks.cannot_write(kind);
    found.go_with_it[kind] = looks.goes_with_it(kind);
    const Family family = view_.kinds[kind].family;
    any |= (names_writing(family) && looks.any(kind)) ||
           (family == Family::kNone && !found.cannot[kind] && looks.writing[kind] > 0);
  }
  if (any) writers_ = std::move(found);
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

// Code of the job's own does not wait, and a library's is not known to, unless it is one that waits by its name. Where
// such a wait is seen, the rest is none.
bool Stacks::may_wait_for_helpers(const stacks::StackKind& kind, SourceId process) const {
  constexpr double kSeen = 0.05;  // of the looks at it
  if (kind.own || kind.waits) return !kind.own;
  if (waiter_.process != process) {
    const auto looks = view_.looks.at(process).all();
    const auto waits = std::count_if(looks.begin(), looks.end(), [&](const ListRow& look) {
      const stacks::StackKind& seen = view_.kind_of(look);
      return seen.family == Family::kLoaderWait || (seen.waits && !seen.own);
    });
    waiter_ = {process, static_cast<double>(waits) >= kSeen * static_cast<double>(looks.size())};
  }
  return !waiter_.named;
}

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
  const auto& other = counted(may_wait_for_helpers(kind, *stretch.use.context.process), may_write);
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
  last_ = {}, writers_ = {}, waiter_ = {};
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
