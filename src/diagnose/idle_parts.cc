// SPDX-License-Identifier: Apache-2.0
#include "diagnose/idle_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "analyze/ends.h"
#include "base/human.h"
#include "diagnose/core_waits.h"
#include "diagnose/host_memory.h"
#include "diagnose/host_waits.h"
#include "diagnose/named_code.h"
#include "diagnose/pauses.h"
#include "diagnose/words.h"
#include "model/loop_accounts.h"
#include "model/named_causes.h"
#include "model/places.h"

namespace headroom::diagnose {

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

// Whether the kernels of both ran at the same time for most of the shorter one's, wherever in the readings they were:
// they take longer together than the time there was.
bool at_once(const Analysis& a, std::size_t device, std::size_t other) {
  Claims both;
  for (const std::size_t one : {device, other})
    claim_on(
        a, one, [](const Slice& slice) { return slice.account == Account::kUseful; }, both);
  const Nanos sum = length(both);
  Nanos begin = a.window.end, end = a.window.begin;
  for (const ClaimedPiece& piece : both) begin = std::min(begin, piece.begin), end = std::max(end, piece.end);
  const Nanos shorter = std::min(a.ledger.total(Account::kUseful, device), a.ledger.total(Account::kUseful, other));
  return is_most(a, sum - (end - begin), shorter);
}

// A trace tells of copies, too, what the others wait for.
bool at_work(const Slice& slice) {
  return slice.account == Account::kUseful || (slice.account == Account::kTransfer && slice.tiers.has("C"));
}

// What the other devices of a process work at, as if on this one.
Claims work_of_others(const Analysis& a, const std::set<std::size_t>& devices, std::size_t device) {
  Claims work;
  for (const std::size_t other : devices) {
    if (other == device) continue;
    Claims there;
    claim_on(a, other, at_work, there);
    work = united(work, moved_to(std::move(there), device));
  }
  return work;
}

// The time in which a device of a process has no kernel, and that part of it in which another one works.
struct Idleness {
  Claims all, waits;
};

Idleness idleness(const Analysis& a, const std::set<std::size_t>& devices, std::size_t device) {
  Claims idle, syncs;
  claim_on(a, device, between_kernels, idle);
  claim_on(a, device, synchronises, syncs);
  const Claims work = work_of_others(a, devices, device);
  const Claims for_them =
      is_profiled(a) ? common(syncs, work) : waits_for_others(syncs, work, block_of(a), a.limits[Threshold::kCovers]);
  return {united(idle, syncs), united(common(idle, work), for_them)};
}
}  // namespace

UnevenTime uneven_time(const Analysis& a) {
  UnevenTime uneven;
  if (a.job.batch.present) return uneven;
  const auto busy = [&](std::size_t device) { return static_cast<double>(a.ledger.total(Account::kUseful, device)); };
  for (const auto& [process, devices] : devices_of_processes(a)) {
    if (devices.size() < 2) continue;
    double busiest = 0;
    for (const std::size_t device : devices) busiest = std::max(busiest, busy(device));
    for (const std::size_t device : devices) {
      const auto [idle, waits] = idleness(a, devices, device);
      const bool little = busy(device) < a.limits[Threshold::kUneven] * busiest;
      if (!little && !is_most(a, length(waits), length(idle))) continue;
      if (!little && a.material(length(waits))) {
        const bool beside = std::any_of(devices.begin(), devices.end(), [&a, at = device](std::size_t other) {
          return other != at && at_once(a, at, other);
        });
        uneven.at_once |= beside;
        uneven.in_turn |= !beside;
      }
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

void gains_of_a_straggler(const Analysis& a, Finding& finding) {
  if (is_likeliest(finding, Cause::kStraggler)) gains_by_spreading(a, devices_of_ranks(a), finding);
}

bool has_ranks(const Analysis& a) {
  return !a.job.batch.present && !one_process_on_several(a) && devices_of_ranks(a).size() > 1;
}

namespace {

// Idle time of a device whose process slept at a socket or a pipe for most of it. Ranks may talk by those themselves.
Claims asleep_at_others(const Analysis& a, std::size_t device) {
  Claims idle;
  claim_on(
      a, device,
      [](const Slice& slice) { return slice.account == Account::kHostCode || slice.account == Account::kUnexplained; },
      idle);
  if (idle.empty()) return {};
  const HostSummary s = host_during(a.job, a.devices, idle);
  const bool slept =
      s.owners > 0 && s.owner_cpu + s.owner_threads + s.owner_delay < a.limits[Threshold::kHelpersAtWork];
  const bool there = s.waiting_in({WaitChannel::kSocket, WaitChannel::kPipe}) >= a.limits[Threshold::kMajority];
  return slept && there ? idle : Claims{};
}

}  // namespace

Claims waits_beside(const Analysis& a, Account account) {
  const Claims works = claim_accounts(a, {account});
  Claims waits = claim_accounts(a, {Account::kPeers});
  if (works.empty() || !has_ranks(a)) return {};
  for (std::size_t device = 0; device < a.devices.size(); ++device) waits = united(waits, asleep_at_others(a, device));
  if (waits.empty()) return {};
  Claims beside;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    Claims waited, elsewhere;
    for (const ClaimedPiece& piece : waits)
      if (piece.device == device) waited.push_back(piece);
    for (std::size_t other = 0; other < a.devices.size(); ++other) {
      Claims there;
      for (const ClaimedPiece& piece : works)
        if (piece.device == other && other != device) there.push_back(piece);
      elsewhere = united(elsewhere, moved_to(std::move(there), device));
    }
    beside = united(beside, waits_for_others(waited, elsewhere, block_of(a), a.limits[Threshold::kMajority]));
  }
  return beside;
}

void claim_waits_beside(const Analysis& a, const Claims& beside, Finding& finding) {
  if (beside.empty()) return;
  const bool for_it = std::all_of(beside.begin(), beside.end(),
                                  [](const ClaimedPiece& piece) { return piece.account == Account::kPeers; });
  finding.evidence.push_back(
      fmt::format("meanwhile the job's other processes, on {}, {}: {} of GPU time", gpu_names(a, devices_of(beside)),
                  for_it ? "wait for this one" : "sleep at a socket or a pipe, as who waits for this one does",
                  human_duration(length(beside))));
  finding.claims = united(finding.claims, beside);
}

Claims rank_waits(const Analysis& a, const Claims& known) {
  if (!has_ranks(a)) return {};
  const Claims idle = without(claim_accounts(a, {Account::kHostCode, Account::kUnexplained, Account::kPeers}), known);
  const HostSummary s = host_during(a.job, a.devices, idle);
  const bool apart = s.most_owner_cpu - s.least_owner_cpu >= a.limits[Threshold::kRanksApart];
  return devices_of(idle).size() > 1 && apart ? idle : Claims{};
}

bool would_show_waits(const Analysis& a, std::size_t device) {
  const auto idle = [](const Slice& slice) { return in_loop(slice.account) && !is_busy(slice.account); };
  Claims all, told;
  claim_on(a, device, idle, all);
  claim_on(
      a, device, [&](const Slice& slice) { return idle(slice) && (slice.tiers.has("Y") || slice.tiers.has("X")); },
      told);
  return is_most(a, length(told), length(all));
}

LateRank late_rank(const Analysis& a, const Claims& known) {
  LateRank late;
  const auto held = devices_of_processes(a);
  const Claims waits = without(claim_accounts(a, {Account::kPeers}), known);
  if (waits.empty() || is_profiled(a) || !has_ranks(a) || !rank_waits(a, known).empty()) return late;
  std::map<std::size_t, Nanos> waited;
  for (const auto& [process, devices] : held)
    if (would_show_waits(a, *devices.begin())) waited[*devices.begin()] = 0;
  for (const ClaimedPiece& piece : waits)
    if (const auto of = waited.find(piece.device); of != waited.end()) of->second += piece.end - piece.begin;
  if (waited.size() < 2) return late;
  const auto less = [](const auto& x, const auto& y) { return x.second < y.second; };
  const auto ends = std::minmax_element(waited.begin(), waited.end(), less);
  const auto least = ends.first, most = ends.second;
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
               !a.held_for_nothing(slice) && !an_end_lies_in(slice);
      },
      idle);
  // Where within a reading either lies is not known.
  late.claims = waits_for_others(idle, moved_to(std::move(of_the_others), late.device), block_of(a),
                                 a.limits[Threshold::kMajority]);
  if (!a.material(length(late.claims))) late.claims.clear();
  return late;
}

namespace {

bool launches(const Analysis& a, const ClaimedPiece& piece) {
  return info(family_of(a, piece)).busy == stacks::Busy::kLaunches;
}

// From the end of a device's start-up, which may go on after its first kernels, to its last kernel.
std::optional<Window> after_start(const DeviceTime& device) {
  constexpr Nanos kAFew = kSecond;  // of kernels: an import after these is a late one
  std::optional<Window> after;
  Nanos computed = 0;
  for (const Slice& slice : device.slices) {
    if (slice.account == Account::kStartup && computed < kAFew) after = Window{slice.end, slice.end};
    if (slice.account != Account::kUseful) continue;
    computed += slice.end - slice.begin;
    if (after) after->end = slice.end;
  }
  return after;
}

}  // namespace

Claims first_steps(const Analysis& a, const Claims& idle) {
  constexpr Nanos kSoon = 4 * kSecond, kGoesOn = 2 * kSecond;  // after the start-up; after that
  constexpr Nanos kLess = 4;                                   // later, by that factor
  if (a.job.batch.present) return {};
  std::vector<std::optional<Window>> after;
  for (const DeviceTime& device : a.devices) after.push_back(after_start(device));
  Claims soon;
  Nanos later = 0;
  for (const ClaimedPiece& piece : in_pauses(a, idle)) {
    const auto& work = after[piece.device];
    if (!work || work->length() < kSoon + kGoesOn || piece.begin < work->begin || !launches(a, piece)) continue;
    if (piece.begin < work->begin + kSoon)
      soon.push_back(piece);
    else
      later += piece.end - piece.begin;
  }
  return kLess * later <= length(soon) ? soon : Claims{};
}

Claims at_copies(const Analysis& a, const Claims& host, const Claims& copies) {
  constexpr Nanos kPart = 5;  // a fifth of both
  struct There {
    Nanos copies = 0, host = 0;
  };
  std::map<std::int32_t, There> at;  // by place
  for (const ClaimedPiece& piece : copies) at[piece.where].copies += piece.end - piece.begin;
  for (const ClaimedPiece& piece : host) at[piece.where].host += piece.end - piece.begin;
  Claims there;
  for (const ClaimedPiece& piece : host) {
    const There& one = at[piece.where];
    if (piece.where >= 0 && kPart * one.copies >= one.copies + one.host &&
        a.ledger.line_of(piece.where, Account::kTransfer).line > 0)
      there.push_back(piece);
  }
  const bool covered = copying(a, united(copies, there)) >= a.limits[Threshold::kCovers];
  return covered ? there : Claims{};
}

IdleParts idle_parts(const Analysis& a) {
  IdleParts parts{.beside_checkpoint = waits_beside(a, Account::kCheckpoint),
                  .beside_validation = waits_beside(a, Account::kValidationHost),
                  .restarts = worker_restarts(a),
                  .uneven = uneven_time(a)};
  const Claims known = united(parts.beside_checkpoint, parts.beside_validation);
  parts.ranks = rank_waits(a, known);
  parts.late = late_rank(a, known);
  parts.first_steps = first_steps(a, open_time(a, parts, {Account::kHostCode}));
  if (memory_was_short(a)) {
    const Claims idle = open_time(a, parts, {Account::kInput, Account::kHostCode, Account::kUnexplained});
    parts.swapping = swapping(a, idle);
    parts.rereading = rereading(a, without(idle, parts.swapping));
  }
  if (a.ledger.total(Account::kTransfer) > 0)
    parts.copies = at_copies(a, open_time(a, parts, {Account::kHostCode}), open_time(a, parts, {Account::kTransfer}));
  parts.cores = for_want_of_cores(a, open_time(a, parts, {Account::kHostCode, Account::kSync}));
  return parts;
}

Claims open_time(const Analysis& a, const IdleParts& parts, std::initializer_list<Account> accounts) {
  Claims claims = claim_accounts(a, accounts);
  if (claims.empty()) return claims;
  for (const Claims* taken : {&parts.beside_checkpoint, &parts.beside_validation, &parts.first_steps,
                              &parts.restarts.pauses, &parts.uneven.claims, &parts.ranks, &parts.late.claims,
                              &parts.swapping, &parts.rereading, &parts.copies, &parts.cores})
    if (!taken->empty()) claims = without(claims, *taken);
  return is_profiled(a) ? without(claims, profiled_idle(a)) : claims;
}

bool is_profiled(const Analysis& a) {
  return std::any_of(a.gpus.begin(), a.gpus.end(), [](const GpuAnalysis& gpu) { return gpu.profile.has_value(); });
}

Claims profiled_idle(const Analysis& a) {
  return claim(a, [](std::size_t, const Slice& slice) {
    const bool exchange = slice.account == Account::kPeers || slice.account == Account::kValidationHost;  // by its name
    return slice.tiers.has("C") && is_held_idle(slice.account) && !exchange;
  });
}

namespace {

// Whether what looks like pauses are the steps: many, with hardly a kernel between them, or one in nearly each reading,
// which does not tell a pause from many short ones.
bool are_the_steps(const std::vector<Window>& pauses, Nanos interval) {
  constexpr std::size_t kMany = 8;
  constexpr double kNearlyAll = 0.9, kNearlyEach = 0.8;  // of the time from the first to the last; of its readings
  if (pauses.size() < kMany) return false;
  Nanos idle = 0;
  for (const Window& pause : pauses) idle += pause.length();
  const auto all = static_cast<double>(pauses.back().end - pauses.front().begin);
  const double readings = all / static_cast<double>(std::max<Nanos>(1, interval));
  return static_cast<double>(idle) >= kNearlyAll * all || static_cast<double>(pauses.size()) >= kNearlyEach * readings;
}

}  // namespace

Claims in_pauses(const Analysis& a, const Claims& claims) {
  if (claims.empty()) return {};
  constexpr double kAlone = 0.9;  // of the time there: no kernel ran beside it
  std::vector<bool> in_long_stays;
  for (const std::string& place : a.ledger.places) {
    const auto idle = a.code.idle_shares.find(place);
    in_long_stays.push_back(a.code.long_stays.contains(place) && idle != a.code.idle_shares.end() &&
                            idle->second >= kAlone);
  }
  Claims pauses;
  std::set<std::size_t> in_steps;  // devices
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    std::vector<Window> all = pauses_of(a.devices[device], between_kernels);
    std::erase_if(all, [&](const Window& pause) { return pause.length() < a.limits.time(Threshold::kLongPause); });
    if (are_the_steps(all, a.meta.interval)) {
      in_steps.insert(device);
      continue;
    }
    for (const Window& pause : all) pauses.push_back({device, pause.begin, pause.end, Account::kUnexplained, -1});
  }
  const Claims slow = claim(a, [&](std::size_t device, const Slice& slice) {
    if (in_steps.contains(device)) return false;
    return a.is_pause(slice.phase) || (slice.where >= 0 && in_long_stays[static_cast<std::size_t>(slice.where)]);
  });
  return common(claims, united(pauses, slow));
}

}  // namespace headroom::diagnose
