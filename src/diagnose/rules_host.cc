// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/human.h"
#include "diagnose/core_waits.h"
#include "diagnose/host_memory.h"
#include "diagnose/host_waits.h"
#include "diagnose/idle_parts.h"
#include "diagnose/loop_role.h"
#include "diagnose/named_code.h"
#include "diagnose/named_waits.h"
#include "diagnose/rhythm.h"
#include "diagnose/rules.h"
#include "diagnose/words.h"
#include "diagnose/work_during.h"

namespace headroom::diagnose {

namespace {

// Of the intervals of the claimed time only a part is claimed, and what ran in the rest counts, too.
bool hardly(const Analysis& a, double ran, const Claims& claims) {
  constexpr double kHardly = 0.25;  // of the claimed part
  return ran < std::max(a.limits[Threshold::kHelpersAtWork], kHardly * part_claimed(claims));
}

// The share of the claimed time in which its threads ran, or its main thread wanted to, if all that they did so in
// these readings was in it.
double ran_at_most(const HostSummary& s, const Claims& claims) {
  return (s.owner_cpu + s.owner_delay + s.owner_threads) / std::max(1e-9, part_claimed(claims));
}

// Whether its stacks were in nothing but waits for most of the time, such as a lock on a file, or a sleep.
bool only_waits(const Analysis& a, const HostSummary& s, const Claims& claims) {
  return s.owner_threads < a.limits[Threshold::kOtherThreads] &&
         share_in(a, claims, stacks::Family::kSleep) + share_in(a, claims, stacks::Family::kLock) >=
             a.limits[Threshold::kMajority];
}

// Whether it slept for more of the claimed time than it can have run in.
bool mostly_asleep(const Analysis& a, const HostSummary& s, const Claims& claims) {
  return ran_at_most(s, claims) < a.limits[Threshold::kMajority] || only_waits(a, s, claims);
}

// Whether the kernel of a notebook was in its own loop for most of the time, and in no cell.
bool at_the_prompt(const Analysis& a, const Claims& claims) {
  if (!notebook(a)) return false;
  Nanos in_loop = 0;
  for (const ClaimedPiece& piece : claims) {
    if (piece.where < 0) continue;
    const std::string& place = a.ledger.places[static_cast<std::size_t>(piece.where)];
    if (place.ends_with("(selectors.py)") || place.ends_with("(base_events.py)")) in_loop += piece.end - piece.begin;
  }
  return static_cast<double>(in_loop) >= a.limits[Threshold::kMajority] * static_cast<double>(length(claims));
}

// Asleep on a pipe. What is at its other end may not be known: another process of the job, or what comes before the job
// in a shell's pipeline, where the pipe is its standard input.
void say_the_pipe(const Analysis& a, const HostSummary& s, Finding& finding) {
  if (s.waiting_in({WaitChannel::kPipe}) < a.limits[Threshold::kChannelShare]) return;
  const std::string other = pipe_end(a, s.owner_looks);
  finding.advice =
      other.empty()
          ? "see what is at the other end of the pipe (ls -l /proc/PID/fd while it runs): make what feeds it faster, "
            "or what reads from it; or read ahead and write behind in a thread"
          : fmt::format("see what {} does or waits for (headroom stacks): make that faster, or let it run ahead",
                        other);
}

// Its stacks tell that it waits for a process that it has started, which feeds it, or takes what it sends. True if so.
bool say_the_process(const Analysis& a, const HostSummary& s, Finding& finding) {
  if (s.helpers == 0 || !mostly_at(a, finding.claims, a.code.process_waits)) return false;
  finding.evidence.insert(finding.evidence.begin() + 1,
                          "there it waits for another process, in a pipe, a queue or a lock of multiprocessing");
  std::erase(finding.candidates, Cause::kInputTooFewWorkers);
  finding.candidates.insert(finding.candidates.begin(), Cause::kInputTooFewWorkers);
  const bool sends = std::erase(finding.candidates, Cause::kLoggingUpload) > 0;
  if (sends) finding.candidates.push_back(Cause::kLoggingUpload);
  finding.advice =
      "see what the processes that it started do meanwhile (headroom stacks): more of them, or what they wait for made "
      "faster";
  return true;
}

// Its stacks are in a sleep that the user's own code calls: no call of CUDA waits so. True if so.
bool say_the_timer(const Analysis& a, Finding& finding) {
  if (share_in(a, finding.claims, stacks::Family::kSleep) < a.limits[Threshold::kMajority]) return false;
  std::erase_if(finding.candidates,
                [](Cause cause) { return cause == Cause::kSyncPoints || cause == Cause::kPageableCopies; });
  finding.advice =
      "if it looks there again and again for something: look more often, or wait for that itself (a pipe, a lock, a "
      "file event); else sleep less, or beside the kernels";
  return true;
}

// Whether its waits for a core take most of the claimed time, and more than it ran. Where little is claimed they may be
// those behind its waits for kernels; one that spins wants its core while kernels run, too.
bool wants_a_core(const Analysis& a, const HostSummary& s, const Claims& claims) {
  const bool spins =
      std::any_of(claims.begin(), claims.end(), [&](const ClaimedPiece& p) { return a.devices[p.device].spins; });
  return !spins && s.owner_delay > s.owner_cpu && part_claimed(claims) >= a.limits[Threshold::kMajority] &&
         s.owner_delay >= a.limits[Threshold::kCovers] * part_claimed(claims) && may_want_cores(a, s, claims);
}

// Its event loop is told by its stacks, and what its coroutines wait for by none.
void say_the_loop(bool in_pauses, Finding& finding) {
  finding.title = in_pauses ? "The GPU pauses while every coroutine of the training process waits (asyncio)"
                            : "The GPU waits while every coroutine of the training process waits (asyncio)";
  finding.candidates = {Cause::kSlowStorage, Cause::kBurstyInput, Cause::kLoggingUpload};
  finding.evidence.insert(finding.evidence.begin(),
                          "its event loop had nothing to run; what its coroutines wait for is on no stack");
}

// Asleep on one in code of its own: a queue, an event or a condition has a name in its stacks.
bool takes_a_lock(const Analysis& a, const HostSummary& s, const Claims& claims) {
  const double most = a.limits[Threshold::kMajority];
  return on_a_lock(s, claims) >= most && share_in(a, claims, stacks::Family::kLock) < 1 - most;
}

// Who has the lock is not seen.
void say_the_lock(const Analysis& a, const HostSummary& s, bool in_pauses, Finding& finding) {
  finding.title = in_pauses ? "The GPU pauses while the main thread of the training process waits on a lock"
                            : "The GPU waits while the main thread of the training process waits on a lock";
  finding.candidates = asleep_for(a, s, finding.claims, in_pauses);
  std::erase(finding.candidates, Cause::kInputInMainProcess);
  finding.evidence.insert(finding.evidence.begin(), "other threads of its process hardly ran meanwhile");
}

// What the finding says once stacks have named the code: these tell where it was, not whether it ran.
void say_with_stacks(const Analysis& a, const HostSummary& s, bool in_pauses, Finding& finding) {
  finding.title =
      in_pauses ? "The GPU pauses for code of the training process" : "The GPU waits for code of the training process";
  const double main = s.owner_cpu + s.owner_delay;
  if (mostly_at(a, finding.claims, a.code.feeding)) {
    finding.by_threads = true;
    finding.title = in_pauses ? "The GPU pauses while the main thread waits for another thread of its process"
                              : "The GPU waits while the main thread waits for another thread of its process";
    finding.evidence.insert(finding.evidence.begin(),
                            "the main thread waits there until that thread is done or says so");
    finding.candidates = {Cause::kEpochEndHostWork, Cause::kValidation, Cause::kCheckpointSync,
                          Cause::kInputTooFewWorkers};
  } else if (hardly(a, main, finding.claims) && s.owner_threads >= a.limits[Threshold::kOtherThreads] &&
             s.waiting_in({WaitChannel::kFutex}) >= a.limits[Threshold::kMajority]) {
    finding.title = "The GPU waits while the main thread of the training process waits on a lock";
    // Of its threads one may load: then that is too slow, as a worker process can be.
    finding.candidates = {Cause::kGilContention, Cause::kInputTooFewWorkers, Cause::kBurstyInput};
    if (no_loader(a, s)) finding.candidates.push_back(Cause::kInputInMainProcess);
    finding.candidates.push_back(Cause::kHostGraphBuilding);
  } else if (hardly(a, main + s.owner_threads, finding.claims) && mostly_at(a, finding.claims, a.code.idle_loops)) {
    say_the_loop(in_pauses, finding);
  } else if (hardly(a, main + s.owner_threads, finding.claims) && takes_a_lock(a, s, finding.claims)) {
    say_the_lock(a, s, in_pauses, finding);
  } else if (hardly(a, main + s.owner_threads, finding.claims) || only_waits(a, s, finding.claims)) {
    finding.title = in_pauses ? "The GPU pauses while the training process sleeps or waits itself"
                              : "The GPU waits while the training process sleeps or waits itself";
    finding.candidates = asleep_for(a, s, finding.claims, in_pauses);
    may_wait_for_somebody(a, s, in_pauses, finding);
  } else if (hardly(a, main, finding.claims)) {
    finding.title = "The GPU waits while the main thread sleeps or waits, and other threads of its process run";
    // Who only listens at its own port waits for no data, and sends none: what its threads do is what takes the time.
    const bool listens =
        share_on(a, s.owner_looks, WaitKind::kAccepted) >= a.limits[Threshold::kCovers] * part_claimed(finding.claims);
    finding.candidates = listens ? Causes{Cause::kHostGraphBuilding} : asleep_for(a, s, finding.claims, in_pauses);
    add(finding.candidates, {Cause::kGilContention});
  } else if (const double ran = ran_at_most(s, finding.claims); ran < a.limits[Threshold::kCovers]) {
    if (ran < a.limits[Threshold::kMajority])
      finding.title = in_pauses ? "The GPU pauses while the training process mostly sleeps or waits itself"
                                : "The GPU waits while the training process mostly sleeps or waits itself";
    finding.evidence.push_back(
        fmt::format("it ran, or wanted to, for as long as {} of this time at most: for the rest it slept or waited",
                    human_percent(ran)));
    Causes waits = waited_for(a, s, in_pauses);  // the likeliest where it wrote or read, or slept at what it reads from
    for (const Cause cause : finding.candidates) add(waits, {cause});
    for (const Cause cause : asleep_for(a, s, finding.claims, in_pauses)) add(waits, {cause});
    finding.candidates = std::move(waits);
  } else {
    const bool sends = std::erase(finding.candidates, Cause::kLoggingUpload) > 0;
    // Where it sleeps on a connection, in code that no loader has: rather what it sends than what it reads.
    if (sends) finding.candidates.insert(finding.candidates.begin(), Cause::kLoggingUpload);
    // That it wanted a core is counted by the reading: it may have been while kernels ran, and now it slept.
    if (hardly(a, s.owner_cpu + s.owner_threads, finding.claims))
      for (const Cause cause : asleep_for(a, s, finding.claims, in_pauses)) add(finding.candidates, {cause});
  }
  if (copying(a, finding.claims) >= a.limits[Threshold::kChannelShare]) {
    if (a.material(a.ledger.total(Account::kTransfer))) {  // copies without a kernel were seen: the likeliest
      std::erase(finding.candidates, Cause::kPageableCopies);
      finding.candidates.insert(finding.candidates.begin(), Cause::kPageableCopies);
    }
    add(finding.candidates, {Cause::kPageableCopies});
    finding.evidence.push_back(fmt::format(
        "copies from pageable memory, at {:.0f} GB/s, of as many bytes as came over PCIe would take {} of this time",
        a.limits[Threshold::kPageable] / 1e9, human_percent(std::min(1.0, copying(a, finding.claims)))));
  }
  if (may_want_cores(a, s, finding.claims)) add(finding.candidates, {Cause::kCpuOversubscribed});
  const bool for_a_core = wants_a_core(a, s, finding.claims);
  if (for_a_core) {
    finding.title = "The GPU waits while the main thread of the training process waits for a CPU core";
    finding.candidates = {Cause::kCpuOversubscribed};
    if (s.owner_threads >= a.limits[Threshold::kOtherThreads]) finding.candidates.push_back(Cause::kGilContention);
  }
  const std::vector<Seen> seen = seen_in(s.owner_looks, a.limits[Threshold::kChannelShare]);
  if ((hardly(a, main + s.owner_threads, finding.claims) || mostly_asleep(a, s, finding.claims)) && !seen.empty()) {
    const std::string looks = looks_sentence(a, s.owner_looks, finding.claims);
    std::erase(finding.evidence, looks);
    finding.evidence.insert(finding.evidence.begin(), looks);
  }
  if (at_the_prompt(a, finding.claims)) {
    finding.candidates.clear();
    finding.cause = Cause::kInteractiveHoldingGpu;
    finding.title = "The GPU waits for somebody at a notebook";
  } else if (hardly(a, main + s.owner_threads, finding.claims) &&
             s.owner_looks.share({WaitChannel::kTerminal}) >= a.limits[Threshold::kMajority]) {
    finding.candidates.clear();
    finding.cause = Cause::kInteractiveHoldingGpu;
    finding.title = "The GPU waits for somebody at a terminal";
  }
  if (!in_pauses && a.code.kernel_waits.share >= a.limits[Threshold::kChannelShare])
    finding.evidence.push_back(fmt::format(
        "{} in {}, in {} of the looks at {} stacks: what comes after that does not overlap with the kernels "
        "that it waited for",
        devices_of_ranks(a).size() > 1 ? "the processes on the GPUs wait for their kernels"
                                       : "it waits for its kernels",
        a.code.kernel_waits.place, human_percent(a.code.kernel_waits.share),
        devices_of_ranks(a).size() > 1 ? "all their" : "its"));
  const bool asleep = hardly(a, main + s.owner_threads, finding.claims);
  finding.advice =
      for_a_core ? "fewer processes or threads on " + these_cores(s.usable_cores)
      : finding.by_threads
          ? "let the main thread go on meanwhile and take what that thread made when it is needed, or make it cheaper"
      : mostly_at(a, finding.claims, a.code.idle_loops)
          ? "begin what is awaited there earlier (asyncio.create_task, gather): several at a time, ahead of the step"
      : asleep && takes_a_lock(a, s, finding.claims)
          ? "see which thread or process has that lock meanwhile (py-spy dump shows all threads): hold it shorter, or "
            "take it beside the kernels"
      : hardly(a, main, finding.claims) && s.owner_threads >= a.limits[Threshold::kOtherThreads]
          ? "see what its other threads do meanwhile (headroom stacks): make that cheaper, or do it beside the kernels"
      : asleep || mostly_asleep(a, s, finding.claims)
          ? "see what it waits for there: make that faster, or ask for it ahead of the step or in another thread"
          : "make that code cheaper, or let it overlap with the kernels: ahead of the step, or beside it";
  if (hardly(a, main + s.owner_threads, finding.claims)) {
    const bool in_loop = mostly_at(a, finding.claims, a.code.idle_loops);
    if (!in_loop && !say_the_timer(a, finding) && !say_the_process(a, s, finding)) say_the_pipe(a, s, finding);
    name_the_neighbour(a, finding);
  }
  finding.would_overturn = "headroom stacks REC: if most of the idle seconds lie in other functions, this is wrong";
  if (finding.cause) {
    finding.advice = "let the GPU go while nobody uses it, or run the rest as a job";
    return;
  }
  // Its stacks do not say that it waits for another process of the job; that one's do not say that it does not.
  if (const auto wait = peer_in(a, finding.claims, false); wait && hardly(a, main, finding.claims)) {
    finding.title += ", perhaps for another of its job";
    finding.evidence.insert(finding.evidence.begin(), peer_sentence(a, *wait));
    finding.candidates.insert(finding.candidates.begin(), {Cause::kStraggler, Cause::kExposedCommunication});
    finding.advice =
        fmt::format("see whether it waits there for process {}, and if so, why that one takes longer", wait->peer_pid);
  }
}

// What the job's own code is for that keeps the GPU waiting in pauses, by when it runs and what it writes.
void follow_the_rhythm(const Analysis& a, const HostSummary& s, Finding& finding) {
  const auto may_be = [&](Cause cause) {
    return std::find(finding.candidates.begin(), finding.candidates.end(), cause) != finding.candidates.end();
  };
  if (s.owner_write && *s.owner_write < 1 && std::erase(finding.candidates, Cause::kCheckpointSync) > 0)
    finding.told_apart_from.push_back("saving: nothing was written to storage");
  const auto rhythm = rhythm_of(a, finding.claims);
  if (!rhythm || finding.candidates.empty() || finding.candidates.front() == Cause::kCpuOversubscribed) return;
  finding.evidence.push_back(rhythm->sentence);
  Causes kept = rhythm->prepares
                    ? Causes{Cause::kDuplicatePreprocessing, Cause::kInputInMainProcess, Cause::kHostGraphBuilding}
                    : Causes{Cause::kEpochEndHostWork, Cause::kValidation};
  // What keeps such code from running is another matter.
  for (const Cause cause : {Cause::kCheckpointSync, Cause::kGilContention, Cause::kCpuOversubscribed})
    if (may_be(cause) && !(rhythm->prepares && cause == Cause::kCheckpointSync)) kept.push_back(cause);
  finding.candidates = std::move(kept);
  if (rhythm->prepares)
    finding.advice =
        "if it is the same each time, prepare it once and keep the result; else prepare the next one "
        "beside the kernels";
}

// Where its stacks are in the forward or backward pass or in the optimizer, and it runs, it launches kernels.
void follow_the_launches(const Analysis& a, double launching, Finding& finding) {
  const auto launches = std::find(finding.candidates.begin(), finding.candidates.end(), Cause::kLaunchBound);
  if (launches == finding.candidates.end() ||
      launching < a.limits[Threshold::kMajority] * static_cast<double>(finding.cost()))
    return;
  finding.title = "The GPU waits for the code that launches its kernels";
  std::erase_if(finding.candidates, [](Cause cause) {
    return cause == Cause::kInputInMainProcess || cause == Cause::kHostGraphBuilding ||
           cause == Cause::kSlowStorage;  // what is read is libraries, or another part of the readings'
  });
  // Who is hardly ever seen to wait for its kernels does not run dry by waiting for them.
  if (a.code.kernel_waits.share < a.limits[Threshold::kMaterial] && a.code.calls_named &&
      std::erase(finding.candidates, Cause::kSyncPoints) > 0)
    finding.told_apart_from.push_back(
        fmt::format("synchronising: its main thread waited for its kernels in {} of the looks at its stacks",
                    human_percent(a.code.kernel_waits.share)));
  std::erase(finding.candidates, Cause::kLaunchBound);
  finding.candidates.insert(finding.candidates.begin(), Cause::kLaunchBound);
  finding.advice = "launch fewer, larger kernels there (torch.compile, CUDA graphs, a fused optimiser)";
  if (finding.candidates.size() > 1) return;
  finding.cause = Cause::kLaunchBound;
  finding.candidates.clear();
}

// Where most of its stacks are in code that uses no GPU, neither launches nor copies take the time; nor do waits for
// kernels, but after each of them such code runs beside none.
void follow_the_plain(const Analysis& a, const HostSummary& s, Finding& finding) {
  constexpr double kMostly = 2.0 / 3;
  const double share = plain_share(a, finding.claims);
  if (share < kMostly) return;
  const bool drained = a.code.kernel_waits.share >= a.limits[Threshold::kChannelShare] &&
                       ran_at_most(s, finding.claims) >= a.limits[Threshold::kCovers];
  const auto uses_gpu = [&](Cause cause) {
    return cause == Cause::kLaunchBound || (cause == Cause::kSyncPoints && !drained) || cause == Cause::kPageableCopies;
  };
  if (std::erase_if(finding.candidates, uses_gpu) > 0)
    finding.told_apart_from.push_back(
        fmt::format("launching kernels{}: in {} of this time its stacks were in Python's own library, or in calls that "
                    "use no GPU",
                    drained ? "" : ", and waiting for them", human_percent(share)));
}

// Metrics read no data, prepare none and save no state: in pauses they belong to a validation or the end of an epoch.
void follow_the_metrics(bool in_pauses, Finding& finding) {
  const Cause theirs = in_pauses ? Cause::kValidation : Cause::kHostGraphBuilding;
  if (std::count(finding.candidates.begin(), finding.candidates.end(), theirs) == 0) return;
  std::erase_if(finding.candidates, [&](Cause cause) {
    return cause == Cause::kInputInMainProcess || cause == Cause::kSlowStorage || cause == Cause::kCheckpointSync ||
           cause == Cause::kDuplicatePreprocessing || (in_pauses && cause == Cause::kHostGraphBuilding);
  });
  finding.title = in_pauses ? "The GPU pauses for metrics in the training process"
                            : "The GPU waits for metrics in the training process";
}

// Where stacks name a family that is a cause of its own, rules of the user's among them, the finding is about that.
void follow_the_family(const Analysis& a, bool in_pauses, Finding& finding) {
  std::map<stacks::Family, Nanos> families;
  for (const ClaimedPiece& piece : finding.claims) {
    if (piece.where < 0) continue;
    const auto known = a.code.families.find(a.ledger.places[static_cast<std::size_t>(piece.where)]);
    if (known != a.code.families.end()) families[known->second] += piece.end - piece.begin;
  }
  double launching = 0;
  for (const stacks::Family family : {stacks::Family::kForward, stacks::Family::kBackward, stacks::Family::kOptimizer})
    launching += static_cast<double>(families[family]);
  follow_the_launches(a, launching, finding);
  if (static_cast<double>(families[stacks::Family::kMetrics]) >=
      a.limits[Threshold::kMajority] * static_cast<double>(finding.cost()))
    follow_the_metrics(in_pauses, finding);
  constexpr std::array kCauses{std::pair(stacks::Family::kLogging, Cause::kLoggingUpload),
                               std::pair(stacks::Family::kGraph, Cause::kHostGraphBuilding),
                               std::pair(stacks::Family::kCompile, Cause::kCompileWarmup),
                               std::pair(stacks::Family::kAllocator, Cause::kAllocatorChurn)};
  for (const auto& [family, cause] : kCauses) {
    if (static_cast<double>(families[family]) < a.limits[Threshold::kMajority] * static_cast<double>(finding.cost()))
      continue;
    finding.title = fmt::format("The GPU waits for {} in the training process", info(family).label);
    // What keeps such code from running is another matter.
    std::erase_if(finding.candidates, [&, c = cause](Cause candidate) {
      return candidate == c || (candidate != Cause::kGilContention && candidate != Cause::kCpuOversubscribed);
    });
    if (finding.candidates.empty())
      finding.cause = cause;
    else
      finding.candidates.insert(finding.candidates.begin(), cause);
    if (family == stacks::Family::kLogging) finding.advice = "do it less often, or from a thread or process of its own";
    if (family == stacks::Family::kAllocator)
      finding.advice = "leave that call out: the framework keeps freed memory for what is allocated next";
  }
}

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

// Where most of it is at a line at which bytes went to storage for longer, it is that writing still, as it waits for
// the disk: bytes are counted when they go, and not while they are waited for.
void follow_the_writing(const Analysis& a, Finding& finding) {
  const std::vector<NamedCode> code = code_in(a, finding.claims);
  if (finding.cause || code.empty() || code[0].least < a.limits[Threshold::kMajority] || code[0].line.line <= 0) return;
  Nanos wrote = 0;
  for (const LedgerEntry& entry : a.ledger.entries)
    if (entry.where == code[0].where && entry.account == Account::kCheckpoint) wrote += entry.ns;
  if (wrote < finding.cost() || !a.material(wrote)) return;
  const bool cores = std::count(finding.candidates.begin(), finding.candidates.end(), Cause::kCpuOversubscribed) > 0;
  finding.candidates = {Cause::kCheckpointSync, Cause::kLoggingUpload};
  if (cores) finding.candidates.push_back(Cause::kCpuOversubscribed);
  finding.title = "The GPU waits while the job writes to storage";
  finding.evidence.push_back(fmt::format("{} kept the GPU waiting for {} while bytes went to storage, too",
                                         code[0].spot(), human_duration(wrote)));
  finding.advice = "write less, less often or from a thread, first to local disk";
}

// Whether stacks show that most of it is code that no step needs: it was seen at some times only.
bool at_times_only(const Analysis& a, const Claims& claims) {
  const std::vector<NamedCode> code = code_in(a, claims);
  if (code.empty() || code[0].least < a.limits[Threshold::kMajority] ||
      !is_of_one_account(a, code[0].where, main_account(claims)))
    return false;
  const auto role = a.code.roles.find(code[0].place);
  return role != a.code.roles.end() &&
         (role->second.recurs == Recurs::kAtTimes || role->second.recurs == Recurs::kEachEpoch);
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
  const bool spins = std::any_of(finding.claims.begin(), finding.claims.end(),
                                 [&](const ClaimedPiece& piece) { return a.devices[piece.device].spins; });
  const bool starved = s.owner_delay > s.owner_cpu + s.owner_threads && !spins;
  Causes waits = waited_for(a, s, in_pauses);
  // Who sleeps on a timer does not want a core then: it did at another time of the same readings.
  if (starved && s.waiting_in({WaitChannel::kSleep}) >= a.limits[Threshold::kChannelShare])
    for (const Cause cause : waits_in(WaitChannel::kSleep, s.helpers > 0, in_pauses)) add(waits, {cause});
  if (copying(a, finding.claims) >= a.limits[Threshold::kChannelShare]) add(waits, {Cause::kPageableCopies});
  if (const auto seen = seen_in(s.owner_looks, a.limits[Threshold::kChannelShare]); !waits.empty() && !seen.empty())
    finding.evidence.push_back(looks_sentence(a, s.owner_looks, finding.claims));
  if (starved && s.owner_delay >= a.limits[Threshold::kHelpersStarved]) {
    finding.cause = Cause::kCpuOversubscribed;
    finding.title = "The training process waits for a CPU core" + waits_for(s);
    if (!waits.empty()) {  // it sleeps between, and each time it wakes it wants a core again
      finding.cause.reset();
      finding.candidates = waits;
      add(finding.candidates, {Cause::kCpuOversubscribed});
      finding.title = "The training process waits for a CPU core, and for something else between";
    }
    finding.advice = threads || s.helpers > 0
                         ? "fewer processes or threads on " + these_cores(s.usable_cores)
                         : fmt::format("less other load on {}, or more cores: other threads of the job hardly ran",
                                       these_cores(s.usable_cores));
    finding.threads_hardly_ran = !threads && s.helpers == 0;
  } else {
    if (in_pauses)
      finding.candidates = {Cause::kValidation, Cause::kEpochEndHostWork, Cause::kCheckpointSync,
                            Cause::kDuplicatePreprocessing};
    if (threads && !a.code.one_python_thread_each) add(finding.candidates, {Cause::kGilContention});
    if (no_loader(a, s)) add(finding.candidates, {Cause::kInputInMainProcess});
    add(finding.candidates, {Cause::kHostGraphBuilding});
    if (!in_pauses) add(finding.candidates, {Cause::kLaunchBound, Cause::kSyncPoints});
    for (const Cause cause : waits) add(finding.candidates, {cause});
    if (may_want_cores(a, s, finding.claims)) add(finding.candidates, {Cause::kCpuOversubscribed});
    finding.advice = in_pauses
                         ? "see in the job's own log what it does in these pauses, then shorten or overlap the longest"
                         : fmt::format(
                               "its stacks ({}) name the function; or train on one cached batch: if it is as "
                               "slow, the data loader is not the cause",
                               has_stacks(a) ? "headroom stacks" : stack_dump(a));
    if (no_loader(a, s) && !threads) finding.told_apart_from.push_back("waiting for loader workers: there are none");
  }
  if (s.owner_io && *s.owner_io < a.limits[Threshold::kOwnerIo] / 2)
    finding.told_apart_from.push_back(
        fmt::format("storage: it was blocked on I/O for {} of the time", human_percent(*s.owner_io)));
  finding.would_overturn = finding.cause
                               ? std::string(kCoresOfItsOwn)
                               : fmt::format("{}: if the main thread spins in a CUDA synchronisation, this is wrong",
                                             has_stacks(a) ? "py-spy dump --native --pid PID" : stack_dump(a));
  if (!code_in(a, finding.claims).empty() && !finding.cause) {
    say_with_stacks(a, s, in_pauses, finding);
    if (in_pauses && !finding.cause && !hardly(a, s.owner_cpu + s.owner_delay, finding.claims))
      follow_the_rhythm(a, s, finding);
    follow_the_family(a, in_pauses, finding);
    follow_the_plain(a, s, finding);
    follow_the_writing(a, finding);
    if (!finding.cause && finding.candidates.size() == 1)
      finding.cause = finding.candidates.front(), finding.candidates.clear();
  }
  if (hardly(a, s.owner_cpu + s.owner_delay, finding.claims) || mostly_asleep(a, s, finding.claims))
    follow_the_wait(a, s, in_pauses, finding);
  finding.asleep = hardly(a, s.owner_cpu + s.owner_delay + s.owner_threads, finding.claims);
  finding.mostly_waits = mostly_asleep(a, s, finding.claims);
  exclude_copies(a, finding);
  exclude_storage(s, finding);
  may_want_memory(a, s, finding);
  may_be_the_link(a, finding);
  name_the_child(a, s, finding);
  gains_at_most(a, finding, "if none of it kept the GPU waiting",
                in_pauses || finding.cause == Cause::kInteractiveHoldingGpu);
  gains_of_a_straggler(a, finding);
  if (const auto cores = core_waits(a);
      cores && finding.cause == Cause::kCpuOversubscribed && !threads && s.helpers == 0)
    gains_the_wait(a, finding, cores->waited + cores->starting, cores->ran, "its main thread");
  return finding;
}

}  // namespace

std::vector<Finding> idle_host_code(const Analysis& a, const IdleParts& parts) {
  const Claims claims = open_time(a, parts, {Account::kHostCode});
  if (!a.material(length(claims))) return {};
  return of_parts(a, claims, host_code);
}

std::vector<Finding> idle_checkpoint(const Analysis& a, const IdleParts& parts) {
  Finding finding;
  finding.claims = claim_accounts(a, {Account::kCheckpoint});
  if (!a.material(length(finding.claims) + length(parts.beside_checkpoint))) return {};
  // Counters tell that it wrote, not what: a state, or a log.
  const Claims told = common(finding.claims, told_time(a));
  // Of a state that is written, stacks show the library's frames for a part of the time, and the caller's for the rest.
  constexpr Nanos kPart = 5;  // a fifth of it
  const bool saves = kPart * length(told) >= finding.cost();
  if (saves)
    finding.cause = Cause::kCheckpointSync;
  else
    finding.candidates = {Cause::kCheckpointSync, Cause::kLoggingUpload};
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  finding.tiers = "NP";
  const bool mostly =
      static_cast<double>(length(told)) >= a.limits[Threshold::kMajority] * static_cast<double>(finding.cost());
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
  const bool spins = std::any_of(finding.claims.begin(), finding.claims.end(),
                                 [&](const ClaimedPiece& piece) { return a.devices[piece.device].spins; });
  const double ran = s.owner_cpu / std::max(1e-9, part_claimed(finding.claims));
  const bool on_disk =
      s.owner_io.value_or(0) >= a.limits[Threshold::kOwnerIo] ||
      s.waiting_in({WaitChannel::kDisk, WaitChannel::kNetworkFs}) >= a.limits[Threshold::kChannelShare];
  const bool makes = !spins && !on_disk && !code_in(a, finding.claims).empty() && ran >= a.limits[Threshold::kCovers];
  finding.would_overturn = saves ? "run once without checkpoints: if the gap stays, this is wrong"
                                 : "run once without checkpoints and output: if the gap stays, this is wrong";
  finding.advice = saves ? "write checkpoints from a thread or less often, first to local disk"
                         : "write less, less often or from a thread, first to local disk";
  if (makes && !saves) {
    finding.title = "The GPU waits while the main thread makes what the job writes to storage";
    finding.evidence.push_back(
        fmt::format("averaged over whole readings its main thread ran on a core for as long as {} of this time, and "
                    "hardly waited for the disk: "
                    "making those bytes takes longer than writing them",
                    human_percent(std::min(1.0, ran))));
    finding.would_overturn = "write the same to /dev/null once: if the gap goes, this is wrong";
    finding.advice = "write only what is new each time, less often, in a cheaper format, or from another process";
  }
  gains_at_most(a, finding, "if the GPU did not wait for writing at all", true);
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
