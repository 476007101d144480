// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "diagnose/core_waits.h"
#include "diagnose/host_memory.h"
#include "diagnose/host_stacks.h"
#include "diagnose/host_waits.h"
#include "diagnose/idle_parts.h"
#include "diagnose/named_code.h"
#include "diagnose/named_waits.h"
#include "diagnose/rules.h"
#include "diagnose/words.h"
#include "diagnose/work_during.h"
#include "model/observations.h"

namespace headroom::diagnose {

namespace {

// ", for 54 % of this time": that of whole readings is no share of a part of them. Where it ran for much of it, too,
// that is said with it: " for 50 % of this time, and runs for 42 %".
std::string waits_for(const HostSummary& s) {
  constexpr double kNearlyAll = 0.9, kMuch = 0.25;
  if (s.owner_delay >= kNearlyAll * s.of_readings) return "";
  if (s.of_readings < kNearlyAll)
    return s.owner_cpu >= kMuch ? ", for a part of this time, and runs for another" : ", for a part of this time";
  return s.owner_cpu >= kMuch ? fmt::format(" for {} of this time, and runs for {}", human_percent(s.owner_delay),
                                            human_percent(s.owner_cpu))
                              : fmt::format(", for {} of this time", human_percent(s.owner_delay));
}

// It wanted a core more than it had one; `waits` are what else it may have waited for.
void say_that_it_wants_cores(const HostSummary& s, const Causes& waits, Finding& finding) {
  finding.cause = Cause::kCpuOversubscribed;
  finding.title = "The training process waits for a CPU core" + waits_for(s);
  if (!waits.empty()) {  // it sleeps between, and each time it wakes it wants a core again
    finding.cause.reset();
    finding.candidates = waits;
    add(finding.candidates, {Cause::kCpuOversubscribed});
    finding.title = "The training process waits for a CPU core, and for something else between";
  }
  finding.advice = advice_for_cores(s);
}

// What else helps who wants a core and waits for its kernels, too.
void may_keep_the_queue_full(const Analysis& a, bool in_pauses, Finding& finding) {
  if (!in_pauses && say_that_it_waits_for_kernels(a, finding))
    finding.advice += "; or let it wait for its kernels less often: a full queue of them hides what its thread takes";
}

// What code may be that no stack names.
void say_what_code_may_be(const Analysis& a, const HostSummary& s, bool in_pauses, const Causes& waits,
                          Finding& finding) {
  const bool threads = s.owner_threads >= a.limits[Threshold::kOtherThreads];
  if (in_pauses)
    finding.candidates = {Cause::kValidation, Cause::kEpochEndHostWork, Cause::kCheckpointSync,
                          Cause::kDuplicatePreprocessing};
  if (threads && !a.code.one_python_thread_each) add(finding.candidates, {Cause::kGilContention});
  if (no_loader(a, s)) add(finding.candidates, {Cause::kInputInMainProcess});
  add(finding.candidates, {Cause::kHostGraphBuilding});
  if (!in_pauses) add(finding.candidates, {Cause::kLaunchBound, Cause::kSyncPoints});
  add(finding.candidates, waits);
  if (may_want_cores(a, s, finding.claims)) add(finding.candidates, {Cause::kCpuOversubscribed});
  finding.advice = in_pauses
                       ? "see in the job's own log what it does in these pauses, then shorten or overlap the longest"
                       : fmt::format(
                             "its stacks ({}) name the function; or train on one cached batch: if it is as "
                             "slow, the data loader is not the cause",
                             has_stacks(a) ? "headroom stacks" : stack_dump(a));
  if (no_loader(a, s) && !threads) finding.told_apart_from.push_back("waiting for loader workers: there are none");
}

Causes all_waited_for(const Analysis& a, const HostSummary& s, const Claims& claims, bool starved, bool in_pauses) {
  const double some = a.limits[Threshold::kChannelShare];
  Causes waits = waited_for(a, s, claims, in_pauses);
  // Who sleeps on a timer does not want a core then: it did at another time of the same readings.
  if (starved && s.waiting_in({WaitChannel::kSleep}) >= some)
    add(waits, waits_in(WaitChannel::kSleep, s.helpers > 0, in_pauses));
  if (copying(a, claims) >= some) add(waits, {Cause::kPageableCopies});
  return waits;
}

Finding host_code(const Analysis& a, Claims claims, bool in_pauses) {
  Finding finding;
  finding.claims = std::move(claims);
  in_pauses |= at_times_only(a, finding.claims);
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  finding.tiers = "NP";
  finding.confidence = Confidence::kMedium;
  finding.title = in_pauses ? "The GPU pauses while code of the training process runs on the CPU"
                            : "The GPU waits for code of the training process on the CPU";
  finding.evidence = {owner_sentence(s), helper_sentence(s)};
  append(finding.evidence, storage_sentences(s));
  append(finding.evidence, recurrences(a, finding.claims));
  append(finding.evidence, growth(a, finding.claims));
  const bool threads = s.owner_threads >= a.limits[Threshold::kOtherThreads];
  // One that spins may have wanted its core while its kernels ran.
  const bool starved = s.owner_delay > s.owner_cpu + s.owner_threads && !spins(a, finding.claims);
  const Causes waits = all_waited_for(a, s, finding.claims, starved, in_pauses);
  if (const auto seen = seen_in(s.owner_looks, a.limits[Threshold::kChannelShare]); !waits.empty() && !seen.empty())
    finding.evidence.push_back(looks_sentence(a, s.owner_looks, finding.claims));
  if (starved && s.owner_delay >= a.limits[Threshold::kHelpersStarved])
    say_that_it_wants_cores(s, waits, finding);
  else
    say_what_code_may_be(a, s, in_pauses, waits, finding);
  if (s.owner_io && *s.owner_io < a.limits[Threshold::kOwnerIo] / 2)
    finding.told_apart_from.push_back(
        fmt::format("storage: it was blocked on I/O for {} of the time", human_percent(*s.owner_io)));
  finding.would_overturn = finding.cause
                               ? std::string(kCoresOfItsOwn)
                               : fmt::format("{}: if the main thread is in a CUDA synchronisation, this is wrong",
                                             has_stacks(a) ? std::string(kNativeStacks) : stack_dump(a));
  if (finding.cause)
    may_keep_the_queue_full(a, in_pauses, finding);
  else if (!code_in(a, finding.claims).empty())
    follow_the_stacks(a, s, in_pauses, finding);
  finding.asleep = all_asleep(a, s, finding.claims);
  finding.mostly_waits = mostly_asleep(a, s, finding.claims);
  if (main_asleep(a, s, finding.claims) || finding.mostly_waits) follow_the_wait(a, s, in_pauses, finding);
  exclude_copies(a, finding);
  exclude_storage(a, s, finding);
  may_want_memory(a, s, finding);
  may_be_the_link(a, finding);
  name_the_child(a, s, finding);
  gains_at_most(a, finding, "if none of it kept the GPU waiting",
                in_pauses || finding.cause == Cause::kInteractiveHoldingGpu);
  gains_of_a_straggler(a, finding);
  if (const auto cores = core_waits(a);
      cores && finding.cause == Cause::kCpuOversubscribed && !threads && s.helpers == 0)
    gains_the_wait(a, finding, cores->waited_of_all, cores->ran_of_all, "its main thread");
  return finding;
}

// Of what may be a log as well: whether making it takes the time, or waiting until the disk has it.
void say_how_it_writes(const Analysis& a, const HostSummary& s, Finding& finding) {
  if (share_in(a, finding.claims, stacks::Family::kWrite) >= a.limits[Threshold::kMajority]) {
    constexpr double kState = 20e6;  // bytes per second, by judgement: in each step so little is no state
    const auto role = a.code.roles.find(code_in(a, finding.claims)[0].place);
    if (role != a.code.roles.end() && role->second.recurs == Recurs::kThroughout &&
        s.owner_write.value_or(kState) < kState)
      finding.cause = Cause::kLoggingUpload, finding.candidates.clear();
    finding.title = "The GPU waits until the disk has what the job writes (fsync)";
    finding.advice =
        "wait for the disk (fsync) less often, once in many writes, or in a thread; or write to a faster disk";
    // Who comes back from the disk wants a core first.
    if (s.owner_delay >= a.limits[Threshold::kMajority] * part_claimed(finding.claims)) {
      if (finding.cause) finding.candidates = {*finding.cause};
      finding.cause.reset();
      finding.candidates.push_back(Cause::kCpuOversubscribed);
      finding.title += ", or for a CPU core after that";
    }
    return;
  }
  const double ran = s.owner_cpu / std::max(1e-9, part_claimed(finding.claims));
  const bool on_disk =
      s.owner_io.value_or(0) >= a.limits[Threshold::kOwnerIo] ||
      s.waiting_in({WaitChannel::kDisk, WaitChannel::kNetworkFs}) >= a.limits[Threshold::kChannelShare];
  const bool makes = !spins(a, finding.claims) && !on_disk && !code_in(a, finding.claims).empty() &&
                     ran >= a.limits[Threshold::kCovers];
  if (makes) {
    finding.title = "The GPU waits while the main thread makes what the job writes to storage";
    finding.evidence.push_back(
        fmt::format("averaged over whole readings its main thread ran on a core for as long as {} of this time, and "
                    "hardly waited for the disk: "
                    "making those bytes takes longer than writing them",
                    human_percent(std::min(1.0, ran))));
    finding.would_overturn = "write the same to /dev/null once: if the gap goes, this is wrong";
    finding.advice = "write only what is new each time, less often, in a cheaper format, or from another process";
  }
}

}  // namespace

std::vector<Finding> idle_host_code(const Analysis& a, const IdleParts& parts) {
  const Claims claims = open_time(a, parts, {Account::kHostCode});
  if (!a.material(length(claims))) return {};
  // Where it sleeps and where it runs are two things.
  const Claims asleep = asleep_in(a, claims), others = without(claims, asleep);
  if (asleep.empty() || !a.material(length(others))) return of_parts(a, claims, host_code);
  std::vector<Finding> findings = of_parts(a, others, host_code);
  for (Finding& finding : of_parts(a, asleep, host_code)) findings.push_back(std::move(finding));
  return findings;
}

std::vector<Finding> idle_checkpoint(const Analysis& a, const IdleParts& parts) {
  Finding finding;
  finding.claims = claim_accounts(a, {Account::kCheckpoint});
  if (!a.material(length(finding.claims) + length(parts.beside_checkpoint))) return {};
  // Counters tell that it wrote, not what: a state, or a log; and so do stacks that wait for the disk.
  Claims told = common(finding.claims, told_time(a));
  const Nanos writes = length(told);
  std::erase_if(told, [&](const ClaimedPiece& piece) { return family_of(a, piece) == stacks::Family::kWrite; });
  // Of a state that is written, stacks show the library's frames for a part of the time, and the caller's for the rest.
  constexpr Nanos kPart = 5;  // a fifth of it
  const bool saves = kPart * length(told) >= finding.cost();
  if (saves)
    finding.cause = Cause::kCheckpointSync;
  else
    finding.candidates = {Cause::kCheckpointSync, Cause::kLoggingUpload};
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  finding.tiers = "NP";
  const bool mostly = is_most(a, writes, finding.cost());
  finding.confidence = mostly ? Confidence::kMedium : Confidence::kLow;
  finding.title =
      saves ? "The GPU waits while the job saves its state" : "The GPU waits while the job writes to storage";
  finding.evidence = storage_sentences(s);
  if (saves && s.owner_write && *s.owner_write < 1)
    finding.evidence.push_back("that it saves is told by its own words or its stacks: nothing had gone to storage yet");
  if (s.owners > 0) finding.evidence.push_back(owner_sentence(s));
  append(finding.evidence, recurrences(a, finding.claims));
  if (is_profiled(a)) say_rounds(a, finding);
  append(finding.evidence, growth(a, finding.claims));
  claim_waits_beside(a, parts.beside_checkpoint, finding);
  finding.would_overturn = saves ? "run once without checkpoints: if the gap stays, this is wrong"
                                 : "run once without checkpoints and output: if the gap stays, this is wrong";
  finding.advice = saves ? "write checkpoints from a thread or less often, first to local disk"
                         : "write less, less often or from a thread, first to local disk";
  if (!saves) say_how_it_writes(a, s, finding);
  gains_at_most(a, finding, "if the GPU did not wait for writing at all", true);
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
