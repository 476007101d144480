// SPDX-License-Identifier: Apache-2.0
#include "diagnose/idle_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/human.h"

namespace headroom::diagnose {

namespace {

bool between_kernels(const Slice& slice) {
  return slice.account == Account::kHostCode || slice.account == Account::kInput ||
         slice.account == Account::kUnexplained || slice.account == Account::kCheckpoint ||
         slice.account == Account::kPeers;
}

// The stretches of a device without a kernel, while its process held it.
std::vector<Window> pauses_of(const DeviceTime& device) {
  std::vector<Window> pauses;
  for (const Slice& slice : device.slices) {
    if (!between_kernels(slice)) continue;
    if (!pauses.empty() && pauses.back().end == slice.begin)
      pauses.back().end = slice.end;
    else
      pauses.push_back({slice.begin, slice.end});
  }
  return pauses;
}

// A program that lives in pauses only serves something else than the work between them.
bool lives_in(const std::vector<Window>& pauses, const Process& process, Nanos until, double most) {
  const Nanos end = process.end.value_or(until);
  Nanos paused = 0;
  auto pause = std::lower_bound(pauses.begin(), pauses.end(), process.start,
                                [](const Window& window, Nanos at) { return window.end <= at; });
  for (; pause != pauses.end() && pause->begin < end; ++pause)
    paused += std::min(pause->end, end) - std::max(pause->begin, process.start);
  return static_cast<double>(paused) >= most * static_cast<double>(end - process.start);
}

// How long it is known to have lived: it is found gone at a sample only, and may have ended soon after the one before.
Nanos known_life(const Analysis& a, const RecordedProcess& process) {
  const auto& did = a.job.did[static_cast<std::size_t>(process.source)];
  if (!process.facts.end) return a.window.end - process.facts.start;
  return (did.empty() ? *process.facts.end : std::min(*process.facts.end, did.back().end)) - process.facts.start;
}

// When workers of this process were replaced; a worker's end is known to a sample only.
void add_restarts(const Analysis& a, SourceId owner, const std::vector<Window>& pauses, WorkerRestarts& restarts) {
  const Nanos close = a.limits.time(Threshold::kRestartClose);
  std::set<SourceId> below;
  for (const SourceId id : descendants(a.job, owner)) below.insert(id);
  std::vector<const Process*> workers;
  for (const RecordedProcess& process : a.processes)
    if (below.contains(process.source) && !a.job.holds[static_cast<std::size_t>(process.source)] &&
        known_life(a, process) >= close)  // a helper that comes and goes is no worker
      workers.push_back(&process.facts);
  std::vector<std::pair<Nanos, Nanos>> ended;  // when, and when it had started
  for (const Process* worker : workers)
    if (worker->end && !lives_in(pauses, *worker, a.window.end, a.limits[Threshold::kWorkersFull]))
      ended.emplace_back(*worker->end, worker->start);
  std::sort(ended.begin(), ended.end());
  std::sort(workers.begin(), workers.end(), [](const Process* x, const Process* y) { return x->start < y->start; });
  for (const Process* next : workers) {
    const Nanos reach = close + a.meta.interval;
    const auto first = std::lower_bound(ended.begin(), ended.end(), std::pair(next->start - reach, Nanos{0}));
    const auto last = std::upper_bound(first, ended.end(), std::pair(next->start + reach, a.window.end));
    const bool replaces = std::any_of(first, last, [&](const auto& one) { return one.second <= next->start - close; });
    if (!replaces) continue;
    ++restarts.workers;
    if (restarts.starts.empty() || next->start - restarts.starts.back() > close) restarts.starts.push_back(next->start);
  }
}

}  // namespace

WorkerRestarts worker_restarts(const Analysis& a) {
  WorkerRestarts restarts;
  if (a.job.batch.present) return restarts;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    WorkerRestarts here;
    std::set<SourceId> owners;
    for (const ContextUse& use : a.job.uses)
      if (use.ours && use.process && use.device == a.devices[device].source &&
          !a.job.children[static_cast<std::size_t>(*use.process)].empty())
        owners.insert(*use.process);
    if (owners.empty()) continue;
    const std::vector<Window> pauses = pauses_of(a.devices[device]);
    for (const SourceId owner : owners) add_restarts(a, owner, pauses, here);
    if (here.starts.empty()) continue;
    // The pause begins when the old workers are told to end, and ends with the first batch of the new ones.
    const Nanos around = a.limits.time(Threshold::kLongPause);
    Claims around_starts, idle;
    for (const Window& pause : pauses)
      if (std::any_of(here.starts.begin(), here.starts.end(),
                      [&](Nanos at) { return pause.begin - around <= at && at <= pause.end; }))
        around_starts.push_back({device, pause.begin, pause.end, Account::kUnexplained, -1});
    claim_on(
        a, device,
        [](const Slice& slice) {
          const bool in_own_code = slice.account == Account::kHostCode && slice.tiers.has("Y");
          return between_kernels(slice) && slice.account != Account::kCheckpoint && !in_own_code;
        },
        idle);
    for (const ClaimedPiece& piece : common(idle, around_starts)) restarts.pauses.push_back(piece);
    restarts.workers += here.workers;
    restarts.starts.insert(restarts.starts.end(), here.starts.begin(), here.starts.end());
  }
  return restarts;
}

namespace {

// The devices that this process holds, as positions; empty for one that holds a single one.
std::map<SourceId, std::set<std::size_t>> devices_of_processes(const Analysis& a) {
  std::map<SourceId, std::set<std::size_t>> held;
  for (const ContextUse& use : a.job.uses)
    for (std::size_t device = 0; device < a.devices.size(); ++device)
      if (use.ours && use.process && a.devices[device].source == use.device) held[*use.process].insert(device);
  return held;
}

Claims moved_to(Claims claims, std::size_t device) {
  for (ClaimedPiece& piece : claims) piece.device = device;
  return claims;
}

bool synchronises(const Slice& slice) { return slice.account == Account::kSync; }

// Calls take(block's number, part) for each block of time that a piece touches.
template <class Take>
void each_block(const Claims& claims, Nanos block, const Take& take) {
  for (const ClaimedPiece& piece : claims)
    for (Nanos at = piece.begin; at < piece.end;) {
      const Nanos end = std::min(piece.end, (at / block + 1) * block);
      take(at / block, ClaimedPiece{piece.device, at, end, piece.account, piece.where});
      at = end;
    }
}

// Who waits for kernels while this device has none waits for another one's. Where within a reading a device was busy is
// not known, and GPUs may take turns many times in one: of each block of time all that waits, if others had kernels for
// about as long.
Claims waits_for_others(const Claims& waits, const Claims& computing, Nanos block, double covers) {
  std::map<Nanos, std::pair<Nanos, Nanos>> blocks;  // waited, computed elsewhere
  each_block(waits, block, [&](Nanos n, const ClaimedPiece& part) { blocks[n].first += part.end - part.begin; });
  each_block(computing, block, [&](Nanos n, const ClaimedPiece& part) { blocks[n].second += part.end - part.begin; });
  Claims taken;
  each_block(waits, block, [&](Nanos n, const ClaimedPiece& part) {
    const auto& [waited, computed] = blocks[n];
    if (static_cast<double>(computed) >= covers * static_cast<double>(waited)) add_piece(taken, part);
  });
  return taken;
}

Nanos block_of(const Analysis& a) {
  constexpr Nanos kMostBlocks = 100'000;  // a span out of a damaged file may be a century
  return std::max(kSecond, a.window.length() / kMostBlocks);
}

}  // namespace

UnevenTime uneven_time(const Analysis& a) {
  UnevenTime uneven;
  if (a.job.batch.present) return uneven;
  const double part = a.limits[Threshold::kUneven];
  const Nanos block = block_of(a);
  for (const auto& [process, devices] : devices_of_processes(a)) {
    if (devices.size() < 2) continue;
    const auto busy = [&](std::size_t device) { return static_cast<double>(a.ledger.total(Account::kUseful, device)); };
    const auto busiest = *std::max_element(devices.begin(), devices.end(),
                                           [&](std::size_t x, std::size_t y) { return busy(x) < busy(y); });
    for (const std::size_t device : devices) {
      Claims idle, syncs, computing;
      claim_on(a, device, between_kernels, idle);
      claim_on(a, device, synchronises, syncs);
      for (const std::size_t other : devices) {
        if (other == device) continue;
        Claims there;
        claim_on(
            a, other, [](const Slice& slice) { return slice.account == Account::kUseful; }, there);
        computing = united(computing, moved_to(std::move(there), device));
      }
      const Claims waits =
          united(common(idle, computing), waits_for_others(syncs, computing, block, a.limits[Threshold::kCovers]));
      idle = united(idle, syncs);
      const bool little = busy(device) < part * busy(busiest);
      const bool in_turn =
          static_cast<double>(length(waits)) >= a.limits[Threshold::kMajority] * static_cast<double>(length(idle));
      if (!little && !in_turn) continue;
      uneven.in_turn |= !little && a.material(length(waits));
      uneven.claims = united(uneven.claims, waits);
    }
  }
  return uneven;
}

bool one_process_on_several(const Analysis& a) {
  const auto held = devices_of_processes(a);
  return std::any_of(held.begin(), held.end(), [](const auto& entry) { return entry.second.size() > 1; });
}

std::set<std::size_t> devices_of_one_process(const Analysis& a) {
  std::set<std::size_t> all;
  for (const auto& [process, devices] : devices_of_processes(a))
    if (devices.size() > 1) all.insert(devices.begin(), devices.end());
  return all;
}

std::set<std::size_t> devices_of_ranks(const Analysis& a) {
  std::set<std::size_t> all;
  for (const auto& [process, devices] : devices_of_processes(a))
    if (devices.size() == 1) all.insert(devices.begin(), devices.end());
  return all;
}

bool has_ranks(const Analysis& a) {
  return !a.job.batch.present && !one_process_on_several(a) && devices_of_ranks(a).size() > 1;
}

Claims rank_waits(const Analysis& a) {
  if (!has_ranks(a)) return {};
  Claims idle = claim_accounts(a, {Account::kHostCode, Account::kUnexplained, Account::kPeers});
  std::set<std::size_t> devices;
  for (const ClaimedPiece& piece : idle) devices.insert(piece.device);
  const HostSummary s = host_during(a.job, a.devices, idle);
  const bool apart = s.most_owner_cpu - s.least_owner_cpu >= a.limits[Threshold::kRanksApart];
  return devices.size() > 1 && apart ? idle : Claims{};
}

LateRank late_rank(const Analysis& a) {
  LateRank late;
  const auto held = devices_of_processes(a);
  const Claims waits = claim_accounts(a, {Account::kPeers});
  if (waits.empty() || is_profiled(a) || !has_ranks(a) || !rank_waits(a).empty()) return late;
  std::map<std::size_t, Nanos> waited;
  for (const auto& [process, devices] : held) waited[*devices.begin()] = 0;
  for (const ClaimedPiece& piece : waits) waited[piece.device] += piece.end - piece.begin;
  const auto less = [](const auto& x, const auto& y) { return x.second < y.second; };
  const auto [least, most] = std::minmax_element(waited.begin(), waited.end(), less);
  const double uneven = a.limits[Threshold::kMajority];
  if (static_cast<double>(least->second) >= uneven * static_cast<double>(most->second)) return late;
  late.device = least->first;
  Claims of_the_others, idle;
  std::copy_if(waits.begin(), waits.end(), std::back_inserter(of_the_others),
               [&](const ClaimedPiece& piece) { return piece.device == most->first; });
  claim_on(
      a, late.device,
      [&](const Slice& slice) {
        return (slice.account == Account::kHostCode || slice.account == Account::kUnexplained ||
                slice.account == Account::kSync) &&
               !a.held_for_nothing(slice);
      },
      idle);
  // Where within a reading either lies is not known.
  late.claims = waits_for_others(idle, moved_to(std::move(of_the_others), late.device), block_of(a),
                                 a.limits[Threshold::kMajority]);
  if (!a.material(length(late.claims))) late.claims.clear();
  return late;
}

Claims open_time(const Analysis& a, std::initializer_list<Account> accounts) {
  Claims claims = claim_accounts(a, accounts);
  if (claims.empty()) return claims;
  for (const Claims& taken : {worker_restarts(a).pauses, uneven_time(a).claims, rank_waits(a), late_rank(a).claims})
    if (!taken.empty()) claims = without(claims, taken);
  return is_profiled(a) ? without(claims, profiled_idle(a)) : claims;
}

bool is_profiled(const Analysis& a) {
  return std::any_of(a.profiles.begin(), a.profiles.end(), [](const auto& profile) { return profile.has_value(); });
}

Claims profiled_idle(const Analysis& a) {
  return claim(a, [](std::size_t, const Slice& slice) {
    const bool exchange = slice.account == Account::kPeers || slice.account == Account::kValidationHost;  // by its name
    return slice.tiers.has("C") && is_held_idle(slice.account) && !exchange;
  });
}

Claims in_pauses(const Analysis& a, const Claims& claims) {
  if (claims.empty()) return {};
  Claims pauses;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    for (const Window& pause : pauses_of(a.devices[device]))
      if (pause.length() >= a.limits.time(Threshold::kLongPause))
        pauses.push_back({device, pause.begin, pause.end, Account::kUnexplained, -1});
  const Claims slow = claim(a, [&](std::size_t, const Slice& slice) { return a.is_pause(slice.phase); });
  return common(claims, united(pauses, slow));
}

namespace {

// Marks, output, or stacks of a family say what it was: not a guess by counters.
bool is_told(const Slice& slice) {
  if (slice.tiers.has("X") || slice.tiers.has("L")) return true;
  return slice.tiers.has("Y") && !slice.tiers.has("P") && slice.account != Account::kHostCode &&
         slice.account != Account::kUnexplained;
}

}  // namespace

Claims told_time(const Analysis& a) {
  return claim(a, [](std::size_t, const Slice& slice) { return is_told(slice); });
}

namespace {

bool told_by_the_job(const Phase& phase) { return phase.named_by == "marks" || phase.named_by == "nvtx"; }

// The phases that the job itself names in which this time lies.
std::set<std::int32_t> told_phases(const Analysis& a, const Claims& claims) {
  std::set<std::int32_t> phases;
  for (const ClaimedPiece& piece : claims) {
    const auto& slices = a.devices[piece.device].slices;
    auto slice = std::upper_bound(slices.begin(), slices.end(), piece.begin,
                                  [](Nanos at, const Slice& s) { return at < s.end; });
    for (; slice != slices.end() && slice->begin < piece.end; ++slice)
      if (slice->named >= 0 && told_by_the_job(a.phases[static_cast<std::size_t>(slice->named)]))
        phases.insert(slice->named);
  }
  return phases;
}

}  // namespace

void gains_at_most(const Analysis& a, Finding& finding, const std::string& condition, bool ends) {
  const std::set<std::int32_t> phases = told_phases(a, finding.claims);
  const auto elsewhere = [&](const Slice& slice) {
    return !phases.empty() && slice.named >= 0 && !phases.contains(slice.named) &&
           told_by_the_job(a.phases[static_cast<std::size_t>(slice.named)]);
  };
  std::set<std::int32_t> input_places;
  bool input = false;
  for (const ClaimedPiece& piece : finding.claims) {
    if (piece.account != Account::kInput) continue;
    input = true;
    if (piece.where >= 0) input_places.insert(piece.where);
  }
  const auto may_be_this = [&](const Slice& slice) {
    // What follows the last kernel is known by its place, not by what it was: it may be the last one of these pauses.
    if (slice.account == Account::kTeardown) return ends;
    // That it waited for its data is told, what kept the data is not.
    if (slice.account == Account::kInput) return input || !is_told(slice);
    // The first batch is waited for before the first kernel, at the same place.
    if (slice.account == Account::kStartup) return input_places.contains(slice.where);
    return between_kernels(slice) && slice.confidence != Confidence::kHigh && !is_told(slice) && !elsewhere(slice);
  };
  const Claims unsure =
      claim(a, [&](std::size_t, const Slice& slice) { return may_be_this(slice) && !a.held_for_nothing(slice); });
  const Claims all = united(finding.claims, unsure);
  const Nanos more = length(all) - finding.cost();
  Claims own = std::exchange(finding.claims, all);
  const std::string with_more =
      fmt::format("{}, and {} with it that may have the same cause", condition, human_duration(more));
  gains_by_removal(a, finding, with_more);
  std::swap(finding.claims, own);
  if (!finding.gain) return;
  Gain all_of_it = *finding.gain;
  std::string bound_of_all = finding.bound;
  gains_by_removal(a, finding, condition);
  // Where it makes no difference to the figure that is read it is not worth a word.
  const bool same = finding.gain && human_factor(finding.gain->high) == human_factor(all_of_it.high);
  if (same)
    all_of_it.condition = condition;
  else
    finding.bound = std::move(bound_of_all);
  finding.gain = std::move(all_of_it);
}

}  // namespace headroom::diagnose
