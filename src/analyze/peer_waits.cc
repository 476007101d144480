// SPDX-License-Identifier: Apache-2.0
#include "analyze/peer_waits.h"

#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>

namespace headroom {

namespace {

constexpr Nanos kSameInstant = 100 * kMillisecond;  // two looks at 20 Hz
constexpr double kFewLooks = 10;
constexpr std::size_t kManyLooks = 20'000;  // of one process; of a longer recording every n-th is looked at

// Each process with a device of the job, and its pid.
std::map<SourceId, std::int64_t> owners(const JobView& job, const StackView& stacks) {
  std::map<SourceId, std::int64_t> owners;
  for (const ContextUse& use : job.uses)
    if (use.ours && use.process && stacks.looks.contains(*use.process)) owners[*use.process] = use.pid;
  return owners;
}

// The look nearest to an instant; null where there is none about then.
const ListRow* look_at(std::span<const ListRow> looks, Nanos at) {
  const std::size_t next = count_until(looks, at);
  const ListRow* nearest = nullptr;
  if (next < looks.size()) nearest = &looks[next];
  if (next > 0 && (nearest == nullptr || at - looks[next - 1].at < nearest->at - at)) nearest = &looks[next - 1];
  return nearest != nullptr && std::abs(nearest->at - at) <= kSameInstant ? nearest : nullptr;
}

// What one other process was at while a process was at stacks of one kind.
struct Beside {
  double at_work = 0;
  std::map<std::uint32_t, double> at;
};

// All looks of a process, by kind.
struct Waiter {
  SourceId process = kNoSource;
  std::map<std::uint32_t, double> looks;
  double all = 0;
  std::map<std::uint32_t, std::map<SourceId, Beside>> beside;
  std::map<SourceId, double> at_work;  // looks at which another one was
};

// Counts while one process is looked at and another one beside it.
class Counts {
 public:
  void add(std::uint32_t here, std::uint32_t there) { of_[std::uint64_t{here} << 32 | there] += 1; }
  void give(SourceId other, Waiter& waiter) const {
    for (const auto& [kinds, count] : of_) {
      Beside& beside = waiter.beside[static_cast<std::uint32_t>(kinds >> 32)][other];
      beside.at_work += count;
      beside.at[static_cast<std::uint32_t>(kinds)] += count;
      waiter.at_work[other] += count;
    }
  }

 private:
  std::unordered_map<std::uint64_t, double> of_;
};

bool is_at_work(const stacks::StackKind& kind) {
  return !kind.waits && !kind.of_processes && kind.family != stacks::Family::kPeers;
}

Waiter waiter_of(SourceId process, const std::map<SourceId, std::int64_t>& others, const StackView& stacks) {
  Waiter waiter{.process = process};
  const std::span<const ListRow> looks = stacks.looks.at(process).all();
  const std::size_t step = 1 + looks.size() / kManyLooks;
  for (std::size_t i = 0; i < looks.size(); i += step) {
    waiter.looks[stacks.number_of(looks[i])] += 1;
    waiter.all += 1;
  }
  for (const auto& [other, pid] : others) {
    if (other == process) continue;
    const std::span<const ListRow> theirs = stacks.looks.at(other).all();
    Counts counts;
    for (std::size_t i = 0; i < looks.size(); i += step) {
      const ListRow* there = look_at(theirs, looks[i].at);
      if (there == nullptr || stacks.number_of(*there) == stacks.number_of(looks[i])) continue;
      if (is_at_work(stacks.kind_of(*there))) counts.add(stacks.number_of(looks[i]), stacks.number_of(*there));
    }
    counts.give(other, waiter);
  }
  return waiter;
}

// Whether stacks of this kind may be a wait at all: neither a wait for kernels, nor something that a family names.
bool may_wait(const stacks::StackKind& kind) {
  return !kind.where.empty() && (kind.family == stacks::Family::kNone || stacks::only_waits(kind.family));
}

PeerWait wait_of(const Waiter& waiter, std::uint32_t number, const std::map<SourceId, std::int64_t>& pids,
                 const JobView& job, const StackView& stacks) {
  const stacks::StackKind& kind = stacks.kinds[number];
  PeerWait wait{.process = waiter.process, .kind = number, .where = kind.where};
  wait.looks = waiter.looks.at(number);
  wait.told = kind.family == stacks::Family::kPeers;
  const auto beside = waiter.beside.find(number);
  if (beside == waiter.beside.end()) return wait;
  const auto most = std::max_element(beside->second.begin(), beside->second.end(),
                                     [](const auto& x, const auto& y) { return x.second.at_work < y.second.at_work; });
  wait.peer = most->first;
  wait.peer_pid = pids.at(most->first);
  if (const auto rank = job.ranks.find(most->first); rank != job.ranks.end()) wait.peer_rank = rank->second;
  wait.at_work = most->second.at_work / wait.looks;
  const auto at = std::max_element(most->second.at.begin(), most->second.at.end(),
                                   [](const auto& x, const auto& y) { return x.second < y.second; });
  wait.peer_at = stacks.kinds[at->first].where;
  wait.peer_waits_for_kernels = stacks.kinds[at->first].busy == stacks::Busy::kWaitsForKernels;
  return wait;
}

// Whether the others tell that it is one: the peer is mostly at work then, and far less often at its other looks.
bool told_by_peer(const PeerWait& wait, const Waiter& waiter, const Thresholds& limits) {
  const double looks = waiter.looks.at(wait.kind), others = waiter.all - looks;
  if (wait.peer == kNoSource || looks < kFewLooks || others < kFewLooks ||
      wait.at_work < limits[Threshold::kPeerAtWork])
    return false;
  const double here = waiter.beside.at(wait.kind).at(wait.peer).at_work;
  const double elsewhere = (waiter.at_work.at(wait.peer) - here) / others;
  return wait.at_work - elsewhere >= limits[Threshold::kPeerApart];
}

}  // namespace

std::vector<PeerWait> peer_waits(const StackView& stacks, const JobView& job, const Thresholds& limits) {
  std::vector<PeerWait> waits;
  if (job.batch.present) return waits;
  const auto pids = owners(job, stacks);
  for (const auto& [process, pid] : pids) {
    const Waiter waiter = waiter_of(process, pids, stacks);
    for (const auto& [number, looks] : waiter.looks) {
      const stacks::StackKind& kind = stacks.kinds[number];
      PeerWait wait = wait_of(waiter, number, pids, job, stacks);
      if (kind.of_processes && may_wait(kind)) wait.told = wait.at_work >= limits[Threshold::kMajority];
      if (wait.told || (may_wait(kind) && told_by_peer(wait, waiter, limits))) waits.push_back(std::move(wait));
    }
  }
  return waits;
}

void for_peers(const std::vector<PeerWait>& waits, StackView& stacks) {
  for (const PeerWait& wait : waits)
    if (wait.told) stacks.for_peers.insert({wait.process, wait.kind});
}

}  // namespace headroom
