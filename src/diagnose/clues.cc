// SPDX-License-Identifier: Apache-2.0
#include "diagnose/clues.h"

#include <algorithm>
#include <array>
#include <utility>

#include "diagnose/host_stacks.h"
#include "diagnose/host_waits.h"
#include "diagnose/idle_parts.h"
#include "diagnose/named_code.h"
#include "diagnose/named_waits.h"
#include "diagnose/rhythm.h"

namespace headroom::diagnose {

namespace {

// Where its main thread was seen asleep, in many of the looks.
void add_places(const Analysis& a, const HostSummary& s, const Claims& claims, std::vector<Clue>& clues) {
  constexpr std::array kPlaces{
      std::pair(WaitChannel::kSocket, Clue::kOnConnection), std::pair(WaitChannel::kPipe, Clue::kOnPipe),
      std::pair(WaitChannel::kPoll, Clue::kInPoll),         std::pair(WaitChannel::kSleep, Clue::kOnTimer),
      std::pair(WaitChannel::kFutex, Clue::kOnLock),        std::pair(WaitChannel::kTerminal, Clue::kAtTerminal)};
  const double often = a.limits[Threshold::kChannelShare];
  // A wait for kernels is one on a lock, too,
  // and who listens at its own port waits for nothing that is on its way.
  const double kernels = a.code.kernel_waits.share, listens = share_on(a, s.owner_looks, WaitKind::kAccepted);
  for (const auto& [channel, clue] : kPlaces) {
    const double other = channel == WaitChannel::kFutex ? kernels : channel == WaitChannel::kSocket ? listens : 0;
    if (s.waiting_in({channel}) - other >= often) clues.push_back(clue);
  }
  // Who writes to a pipe waits for nobody but its reader; the looks are of whole readings, of which a part is claimed.
  const double full = share_on(a, s.owner_looks, WaitKind::kFullPipe);
  if (full > 0 && full >= a.limits[Threshold::kMajority] * part_claimed(claims)) {
    std::erase(clues, Clue::kOnPipe);
    clues.push_back(Clue::kOnFullPipe);
  }
  if (s.waiting_in({WaitChannel::kDisk, WaitChannel::kNetworkFs}) >= often || s.owner_looks.blocked_share() >= often ||
      share_on(a, s.owner_looks, WaitKind::kFile) >= often)
    clues.push_back(Clue::kOnFile);
}

// What its main thread did, of the part of the readings that is claimed.
void add_running(const Analysis& a, const HostSummary& s, const Claims& claims, std::vector<Clue>& clues) {
  constexpr double kHardly = 0.25;
  const double part = part_claimed(claims);
  // Readings are longer than this time: where its stacks only wait in it, it ran in the rest of them.
  const double waits =
      std::max(share_in(a, claims, stacks::Family::kSleep) + share_in(a, claims, stacks::Family::kLock),
               s.waiting_in({WaitChannel::kSleep}) / std::max(part, 1e-9));
  if (s.owner_cpu >= a.limits[Threshold::kCovers] * part && waits < a.limits[Threshold::kMajority])
    clues.push_back(Clue::kRan);
  if (s.owner_cpu + s.owner_delay < kHardly * part) clues.push_back(Clue::kHardlyRan);
  if (s.owner_cpu + s.owner_delay + s.owner_threads < a.limits[Threshold::kMajority] * part)
    clues.push_back(Clue::kSlept);
  if (may_want_cores(a, s, claims)) {
    clues.push_back(Clue::kWantedCore);
    if (s.owner_delay > s.owner_cpu) clues.push_back(Clue::kWantedCoreLonger);
  }
  if (s.owner_threads >= a.limits[Threshold::kOtherThreads]) clues.push_back(Clue::kThreadsRan);
  const auto helpers = static_cast<double>(s.helpers);
  if (s.helper_cpu >= a.limits[Threshold::kHelpersAtWork]) {
    clues.push_back(Clue::kHelpersAtWork);
    if (s.helper_cpu + s.helper_delay * helpers >= a.limits[Threshold::kMajority] * helpers)
      clues.push_back(Clue::kHelpersBusy);
  } else if (no_loader(a, s)) {
    clues.push_back(Clue::kNoHelpers);
  }
}

constexpr double kSome =
    1e6;  // bytes per second; below it may be a log, or a library that is loaded late, by judgement

// From how many bytes per second on writing is a reason for this time. In steps, and never seen blocked on files, it
// writes into memory, which takes a part of this time only where there is much of it; in pauses it may pack for long
// what is little then. Without stacks nothing tells how it writes.
double least_written(const Analysis& a, const Claims& claims, bool pauses, const std::vector<Clue>& clues) {
  constexpr double kIntoMemory = 100e6;  // slower than any, by judgement
  const bool blocked = std::find(clues.begin(), clues.end(), Clue::kOnFile) != clues.end();
  if (blocked || pauses || code_in(a, claims).empty()) return kSome;
  return std::max(kSome, kIntoMemory * a.limits[Threshold::kChannelShare] * part_claimed(claims));
}

// Bytes per second to and from storage. Where stacks name what saves the job's state, that is what writes.
void add_storage(const Analysis& a, const HostSummary& s, const Claims& claims, bool pauses, std::vector<Clue>& clues) {
  constexpr double kHardly = 4e3;  // bytes per second: a page of a library now and then
  if (const auto read = s.owner_read)
    if (const double all = *read + s.helper_read.value_or(0); all >= kSome || all < kHardly)
      clues.push_back(all < kHardly ? Clue::kHardlyRead : Clue::kRead);
  const bool saves = std::any_of(a.code.families.begin(), a.code.families.end(),
                                 [](const auto& place) { return place.second == stacks::Family::kCheckpoint; });
  if (const auto written = s.owner_write)
    if ((*written >= least_written(a, claims, pauses, clues) && !saves && wrote(a, s, claims, pauses)) || *written < 1)
      clues.push_back(*written < 1 ? Clue::kWroteNothing : Clue::kWrote);
  if (s.owner_write.value_or(kSome) < kSome &&
      share_in(a, claims, stacks::Family::kWrite) >= a.limits[Threshold::kMajority])
    clues.push_back(Clue::kFlushesLittle);
}

// Whether about as many looks found it waiting for kernels as kernels ran: hardly one ran beside other code then.
bool kernels_only_awaited(const Analysis& a) {
  constexpr double kAbout = 0.9, kFewest = 50;  // of the time of kernels; looks
  Nanos kernels = 0, all = 0;
  for (const LedgerEntry& entry : a.ledger.entries) {
    if (entry.account == Account::kUseful) kernels += entry.ns;
    if (entry.account == Account::kStartup || entry.account == Account::kTeardown) continue;
    if (entry.account == Account::kUseful || is_held_idle(entry.account)) all += entry.ns;
  }
  const CodeShare& waits = a.code.kernel_waits;
  return waits.looks >= kFewest && kernels > 0 && waits.share >= kAbout * as_share(kernels, all);
}

// Whether the function that has most of it was seen in nearly every second from the first kernel to the last.
bool comes_with_each_step(const Analysis& a, const std::vector<NamedCode>& code) {
  const auto role = a.code.roles.find(code[0].place);
  return code[0].least >= a.limits[Threshold::kMajority] && role != a.code.roles.end() &&
         role->second.recurs == Recurs::kThroughout;
}

void add_code(const Analysis& a, const Claims& claims, std::vector<Clue>& clues) {
  const std::vector<NamedCode> code = code_in(a, claims);
  if (code.empty()) return;
  if (kernels_only_awaited(a)) clues.push_back(Clue::kKernelsOnlyAwaited);
  if (comes_with_each_step(a, code)) clues.push_back(Clue::kEachStep);
  constexpr double kNearlyAll = 0.8, kMostly = 2.0 / 3;
  const double majority = a.limits[Threshold::kMajority], waits = a.code.kernel_waits.share;
  if (waits >= a.limits[Threshold::kChannelShare]) clues.push_back(Clue::kWaitsForKernels);
  if (waits < a.limits[Threshold::kMaterial] && a.code.calls_named) clues.push_back(Clue::kHardlyWaitsForKernels);
  using stacks::Family;
  const double launching = share_in(a, claims, Family::kForward) + share_in(a, claims, Family::kBackward) +
                           share_in(a, claims, Family::kOptimizer);
  const bool alone = share_without_kernels(a, claims, a.code.launch_idle_shares) >= kNearlyAll;
  if (launching >= majority) clues.push_back(alone ? Clue::kWithoutKernels : Clue::kLaunches);
  const bool own = own_code(a, claims) >= kNearlyAll && launching < majority;
  if (own) clues.push_back(Clue::kOwnCode);
  const bool ran = std::find(clues.begin(), clues.end(), Clue::kRan) != clues.end();
  if (own && code[0].least >= majority) {
    const std::string_view name = std::string_view(code[0].place).substr(0, code[0].place.find(" ("));
    if (ran && !stacks::may_validate(name)) clues.push_back(Clue::kNamedOtherwise);
    if (main_account(claims) == Account::kHostCode && !stacks::may_load(name)) clues.push_back(Clue::kNamesNoLoading);
  }
  if (plain_share(a, claims) >= kMostly) clues.push_back(Clue::kPlainCode);
  const Account account = main_account(claims);
  if (interpreter_taken(a, account))
    clues.push_back(Clue::kInterpreterTaken);
  else if (std::any_of(a.code.other_threads.begin(), a.code.other_threads.end(), [&](const ThreadCode& other) {
             return other.account == account && other.with_interpreter >= a.limits[Threshold::kChannelShare];
           }))
    clues.push_back(Clue::kInterpreterOften);
}

}  // namespace

std::vector<Clue> clues_in(const Analysis& a, const Claims& claims) {
  const HostSummary s = host_during(a.job, a.devices, claims);
  if (s.owners == 0) return {};
  std::vector<Clue> clues;
  add_running(a, s, claims, clues);
  add_places(a, s, claims, clues);
  const bool pauses = 2 * length(in_pauses(a, claims)) >= length(claims);
  add_storage(a, s, claims, pauses, clues);
  add_code(a, claims, clues);
  if (const double copies = copying(a, claims); copies >= a.limits[Threshold::kChannelShare])
    clues.push_back(copies >= a.limits[Threshold::kCovers] ? Clue::kCopied : Clue::kCopiedSome);
  if (pauses) clues.push_back(Clue::kPauses);
  if (pauses || at_times_only(a, claims)) {
    const auto rhythm = rhythm_of(a, claims);
    // What loads makes a first batch before the first kernel, whether later ones are the same or not.
    if (rhythm && !(rhythm->prepares && main_account(claims) == Account::kInput))
      clues.push_back(rhythm->prepares ? Clue::kPrepares : Clue::kEnds);
  }
  if (is_called_compiling(a, claims)) clues.push_back(Clue::kCalledCompiling);
  if (takes_commands(a)) clues.push_back(Clue::kNotebook);
  return clues;
}

}  // namespace headroom::diagnose
