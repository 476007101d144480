// SPDX-License-Identifier: Apache-2.0
#include "diagnose/host_stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "base/human.h"
#include "diagnose/core_waits.h"
#include "diagnose/host_waits.h"
#include "diagnose/idle_parts.h"
#include "diagnose/loop_role.h"
#include "diagnose/named_code.h"
#include "diagnose/named_waits.h"
#include "diagnose/rhythm.h"
#include "diagnose/stack_families.h"
#include "diagnose/work_during.h"
#include "model/named_causes.h"

namespace headroom::diagnose {

bool say_that_it_waits_for_kernels(const Analysis& a, Finding& finding) {
  if (a.code.kernel_waits.share < a.limits[Threshold::kChannelShare]) return false;
  const bool ranks = devices_of_ranks(a).size() > 1;
  finding.evidence.push_back(
      fmt::format("{} in {}, in {} of the looks at {} stacks: what comes after that does not overlap with the kernels "
                  "that it waited for",
                  ranks ? "the processes on the GPUs wait for their kernels" : "it waits for its kernels",
                  a.code.kernel_waits.place, human_percent(a.code.kernel_waits.share), ranks ? "all their" : "its"));
  return true;
}

double ran_at_most(const HostSummary& s, const Claims& claims) {
  return (s.owner_cpu + s.owner_delay + s.owner_threads) / std::max(1e-9, part_claimed(claims));
}

std::string gpu_waits(bool in_pauses, std::string_view why) {
  return fmt::format("The GPU {} {}", in_pauses ? "pauses" : "waits", why);
}

namespace {

// Of the intervals of the claimed time only a part is claimed, and what ran in the rest counts, too.
bool hardly(const Analysis& a, double ran, const Claims& claims) {
  constexpr double kHardly = 0.25;  // of the claimed part
  return ran < std::max(a.limits[Threshold::kHelpersAtWork], kHardly * part_claimed(claims));
}

// Whether its stacks were in nothing but waits for most of the time, such as a lock on a file, or a sleep.
bool only_waits(const Analysis& a, const HostSummary& s, const Claims& claims) {
  return s.owner_threads < a.limits[Threshold::kOtherThreads] &&
         share_in(a, claims, stacks::Family::kSleep) + share_in(a, claims, stacks::Family::kLock) >=
             a.limits[Threshold::kMajority];
}

// Whether the kernel of a notebook was in its own loop for most of the time, and in no cell.
bool at_the_prompt(const Analysis& a, const Claims& claims) {
  if (!notebook(a)) return false;
  const Nanos in_loop = length_of(claims, [&](const ClaimedPiece& piece) {
    if (piece.where < 0) return false;
    const std::string& place = a.ledger.places[static_cast<std::size_t>(piece.where)];
    return place.ends_with("(selectors.py)") || place.ends_with("(base_events.py)");
  });
  return is_most(a, in_loop, length(claims));
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
  put_first(finding.candidates, Cause::kInputTooFewWorkers);
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
  std::erase_if(finding.candidates, [](Cause cause) {
    return cause == Cause::kSyncPoints || cause == Cause::kPageableCopies || cause == Cause::kCpuOversubscribed;
  });
  finding.advice =
      "if it looks there again and again for something: look more often, or wait for that itself (a pipe, a lock, a "
      "file event); else sleep less, or beside the kernels";
  return true;
}

// Whether its waits for a core take most of the claimed time, and more than it ran. Where little is claimed they may be
// those behind its waits for kernels; one that spins wants its core while kernels run, too.
bool wants_a_core(const Analysis& a, const HostSummary& s, const Claims& claims) {
  return !spins(a, claims) && s.owner_delay > s.owner_cpu && part_claimed(claims) >= a.limits[Threshold::kMajority] &&
         s.owner_delay >= a.limits[Threshold::kCovers] * part_claimed(claims) && may_want_cores(a, s, claims);
}

// Its event loop is told by its stacks, and what its coroutines wait for by none.
void say_the_loop(bool in_pauses, Finding& finding) {
  finding.title = gpu_waits(in_pauses, "while every coroutine of the training process waits (asyncio)");
  finding.candidates = {Cause::kSlowStorage, Cause::kBurstyInput, Cause::kLoggingUpload};
  finding.evidence.insert(finding.evidence.begin(),
                          "its event loop had nothing to run; what its coroutines wait for is on no stack");
}

// Asleep on one in code of its own: a queue, an event or a condition has a name in its stacks.
bool takes_a_lock(const Analysis& a, const HostSummary& s, const Claims& claims) {
  const double most = a.limits[Threshold::kMajority];
  // A copy is such a sleep, too.
  return on_a_lock(s, claims) >= most && share_in(a, claims, stacks::Family::kLock) < 1 - most &&
         copying(a, claims) < a.limits[Threshold::kCovers];
}

// Who has the lock is not seen.
void say_the_lock(const Analysis& a, const HostSummary& s, bool in_pauses, Finding& finding) {
  finding.title = gpu_waits(in_pauses, "while the main thread of the training process waits on a lock");
  finding.candidates = asleep_for(a, s, finding.claims, in_pauses);
  std::erase(finding.candidates, Cause::kInputInMainProcess);
  finding.evidence.insert(finding.evidence.begin(), "other threads of its process hardly ran meanwhile");
}

// Its main thread waits for one of its other threads.
void say_the_thread(bool in_pauses, Finding& finding) {
  finding.by_threads = true;
  finding.title = gpu_waits(in_pauses, "while the main thread waits for another thread of its process");
  finding.evidence.insert(finding.evidence.begin(), "the main thread waits there until that thread is done or says so");
  finding.candidates = {Cause::kEpochEndHostWork, Cause::kValidation, Cause::kCheckpointSync,
                        Cause::kInputTooFewWorkers};
}

// ... on a lock, while they run. Of its threads one may load: then that is too slow, as a worker process can be.
void say_the_threads_that_run(const Analysis& a, const HostSummary& s, Finding& finding) {
  finding.title = "The GPU waits while the main thread of the training process waits on a lock";
  finding.candidates = {Cause::kGilContention, Cause::kInputTooFewWorkers, Cause::kBurstyInput};
  if (no_loader(a, s)) finding.candidates.push_back(Cause::kInputInMainProcess);
  finding.candidates.push_back(Cause::kHostGraphBuilding);
}

// ... or sleeps, while they run.
void say_the_main_thread_sleeps(const Analysis& a, const HostSummary& s, bool in_pauses, Finding& finding) {
  finding.title = "The GPU waits while the main thread sleeps or waits, and other threads of its process run";
  // Who only listens at its own port waits for no data, and sends none: what its threads do is what takes the time.
  const bool listens =
      share_on(a, s.owner_looks, WaitKind::kAccepted) >= a.limits[Threshold::kCovers] * part_claimed(finding.claims);
  finding.candidates = listens ? Causes{Cause::kHostGraphBuilding} : asleep_for(a, s, finding.claims, in_pauses);
  add(finding.candidates, {Cause::kGilContention});
}

// It ran for a part of the time only, of which `ran` is the most.
void say_that_it_waits_too(const Analysis& a, const HostSummary& s, bool in_pauses, double ran, Finding& finding) {
  if (ran < a.limits[Threshold::kMajority])
    finding.title = gpu_waits(in_pauses, "while the training process mostly sleeps or waits itself");
  finding.evidence.push_back(
      fmt::format("it ran, or wanted to, for as long as {} of this time at most: for the rest it slept or waited",
                  human_percent(ran)));
  Causes waits = waited_for(a, s, finding.claims,
                            in_pauses);  // the likeliest where it wrote or read, or slept at what it reads from
  add(waits, finding.candidates);
  add(waits, asleep_for(a, s, finding.claims, in_pauses));
  finding.candidates = std::move(waits);
}

// Whether it ran or slept in that code, and for what.
void say_what_it_was_at(const Analysis& a, const HostSummary& s, bool in_pauses, Finding& finding) {
  const Claims& claims = finding.claims;
  const bool none_ran = all_asleep(a, s, claims), main_slept = main_asleep(a, s, claims);
  if (mostly_at(a, claims, a.code.feeding)) return say_the_thread(in_pauses, finding);
  if (main_slept && s.owner_threads >= a.limits[Threshold::kOtherThreads] &&
      s.waiting_in({WaitChannel::kFutex}) >= a.limits[Threshold::kMajority])
    return say_the_threads_that_run(a, s, finding);
  if (none_ran && mostly_at(a, claims, a.code.idle_loops)) return say_the_loop(in_pauses, finding);
  if (none_ran && takes_a_lock(a, s, claims)) return say_the_lock(a, s, in_pauses, finding);
  if (none_ran || only_waits(a, s, claims)) {
    finding.title = gpu_waits(in_pauses, "while the training process sleeps or waits itself");
    finding.candidates = asleep_for(a, s, claims, in_pauses);
    if (copying(a, claims) >= a.limits[Threshold::kCovers])  // what keeps it from going on is the device
      std::erase(finding.candidates, Cause::kInputInMainProcess);
    return may_wait_for_somebody(a, s, in_pauses, finding);
  }
  if (main_slept) return say_the_main_thread_sleeps(a, s, in_pauses, finding);
  if (const double ran = ran_at_most(s, claims); ran < a.limits[Threshold::kCovers])
    return say_that_it_waits_too(a, s, in_pauses, ran, finding);
  // Where it sleeps on a connection, in code that no loader has: rather what it sends than what it reads.
  if (may_be(finding, Cause::kLoggingUpload)) put_first(finding.candidates, Cause::kLoggingUpload);
  // That it wanted a core is counted by the reading: it may have been while kernels ran, and now it slept.
  if (hardly(a, s.owner_cpu + s.owner_threads, claims)) add(finding.candidates, asleep_for(a, s, claims, in_pauses));
}

// Copies from pageable memory may be a good part of it, by what came over PCIe.
void may_copy(const Analysis& a, Finding& finding) {
  const double copied = copying(a, finding.claims);
  if (copied < a.limits[Threshold::kChannelShare]) return;
  if (a.material(a.ledger.total(Account::kTransfer)))  // copies without a kernel were seen: the likeliest
    put_first(finding.candidates, Cause::kPageableCopies);
  add(finding.candidates, {Cause::kPageableCopies});
  finding.evidence.push_back(fmt::format(
      "copies from pageable memory, at {:.0f} GB/s, of as many bytes as came over PCIe would take {} of this time",
      a.limits[Threshold::kPageable] / 1e9, human_percent(std::min(1.0, copied))));
}

// Somebody is to type something.
void may_be_at_a_prompt(const Analysis& a, const HostSummary& s, Finding& finding) {
  const bool at_a_notebook = at_the_prompt(a, finding.claims);
  const bool at_a_terminal = all_asleep(a, s, finding.claims) &&
                             s.owner_looks.share({WaitChannel::kTerminal}) >= a.limits[Threshold::kMajority];
  if (!at_a_notebook && !at_a_terminal) return;
  finding.candidates.clear();
  finding.cause = Cause::kInteractiveHoldingGpu;
  finding.title = fmt::format("The GPU waits for somebody at a {}", at_a_notebook ? "notebook" : "terminal");
}

std::string advice_on_code(const Analysis& a, const HostSummary& s, const Finding& finding) {
  const Claims& claims = finding.claims;
  if (finding.by_threads)
    return "let the main thread go on meanwhile and take what that thread made when it is needed, or make it cheaper";
  if (mostly_at(a, claims, a.code.idle_loops))
    return "begin what is awaited there earlier (asyncio.create_task, gather): several at a time, ahead of the step";
  if (all_asleep(a, s, claims) && takes_a_lock(a, s, claims))
    return "see which thread or process has that lock meanwhile (headroom stacks --pid shows all threads): hold it "
           "shorter, or "
           "take it beside the kernels";
  if (main_asleep(a, s, claims) && s.owner_threads >= a.limits[Threshold::kOtherThreads])
    return "see what its other threads do meanwhile (headroom stacks): make that cheaper, or do it beside the kernels";
  const bool asleep = all_asleep(a, s, claims) || mostly_asleep(a, s, claims);
  if (asleep && copying(a, claims) >= a.limits[Threshold::kCovers])
    return "if it copies there: from pinned memory, beside the kernels (pin_memory(), non_blocking=True), or less of "
           "it";
  if (asleep)
    return "see what it waits for there: make that faster, or ask for it ahead of the step or in another thread";
  return "make that code cheaper, or let it overlap with the kernels: ahead of the step, or beside it";
}

// Its stacks do not say that it waits for another process of the job; that one's do not say that it does not.
void may_wait_for_a_peer(const Analysis& a, const HostSummary& s, Finding& finding) {
  const auto wait = peer_in(a, finding.claims, false);
  if (!wait || !main_asleep(a, s, finding.claims)) return;
  finding.title += ", perhaps for another of its job";
  finding.evidence.insert(finding.evidence.begin(), peer_sentence(a, *wait));
  finding.candidates.insert(finding.candidates.begin(), {Cause::kStraggler, Cause::kExposedCommunication});
  finding.advice = fmt::format("see whether it waits there for {}, and if so, why that one takes longer",
                               process_name(wait->peer_pid, wait->peer_rank));
}

// What the finding says once stacks have named the code: these tell where it was, not whether it ran.
void say_with_stacks(const Analysis& a, const HostSummary& s, bool in_pauses, Finding& finding) {
  finding.title = gpu_waits(in_pauses, "for code of the training process");
  say_what_it_was_at(a, s, in_pauses, finding);
  may_copy(a, finding);
  if (may_want_cores(a, s, finding.claims)) add(finding.candidates, {Cause::kCpuOversubscribed});
  const bool for_a_core = wants_a_core(a, s, finding.claims);
  if (for_a_core) {
    finding.title = "The GPU waits while the main thread of the training process waits for a CPU core";
    finding.candidates = {Cause::kCpuOversubscribed};
    if (s.owner_threads >= a.limits[Threshold::kOtherThreads]) finding.candidates.push_back(Cause::kGilContention);
  }
  const bool none_ran = all_asleep(a, s, finding.claims);
  if ((none_ran || mostly_asleep(a, s, finding.claims)) &&
      !seen_in(s.owner_looks, a.limits[Threshold::kChannelShare]).empty()) {
    const std::string looks = looks_sentence(a, s.owner_looks, finding.claims);
    std::erase(finding.evidence, looks);
    finding.evidence.insert(finding.evidence.begin(), looks);
  }
  may_be_at_a_prompt(a, s, finding);
  if (!in_pauses) say_that_it_waits_for_kernels(a, finding);
  finding.advice =
      for_a_core ? "fewer processes or threads on " + these_cores(s.usable_cores) : advice_on_code(a, s, finding);
  if (none_ran || only_waits(a, s, finding.claims)) {
    const bool in_loop = mostly_at(a, finding.claims, a.code.idle_loops);
    if (!in_loop && !say_the_timer(a, finding) && !say_the_process(a, s, finding)) say_the_pipe(a, s, finding);
    name_the_neighbour(a, finding);
  }
  finding.would_overturn = kOtherFunctions;
  if (finding.cause)
    finding.advice = "let the GPU go while nobody uses it, or run the rest as a job";
  else
    may_wait_for_a_peer(a, s, finding);
}

// What the job's own code is for that keeps the GPU waiting in pauses, by when it runs and what it writes.
void follow_the_rhythm(const Analysis& a, const HostSummary& s, Finding& finding) {
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
    if (may_be(finding, cause) && !(rhythm->prepares && cause == Cause::kCheckpointSync)) kept.push_back(cause);
  finding.candidates = std::move(kept);
  if (rhythm->prepares)
    finding.advice =
        "if it is the same each time, prepare it once and keep the result; else prepare the next one "
        "beside the kernels";
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
  const bool cores = may_be(finding, Cause::kCpuOversubscribed);
  finding.candidates = {Cause::kCheckpointSync, Cause::kLoggingUpload};
  if (cores) finding.candidates.push_back(Cause::kCpuOversubscribed);
  finding.title = "The GPU waits while the job writes to storage";
  finding.evidence.push_back(fmt::format("{} kept the GPU waiting for {} while bytes went to storage, too",
                                         code[0].spot(), human_duration(wrote)));
  finding.advice = "write less, less often or from a thread, first to local disk";
}

// What comes through its files, be it from memory, is data, where it is much: who reads that in code of its own loads
// it, and whatever that code does besides is a part of it.
void follow_the_reading(const Analysis& a, const HostSummary& s, bool in_pauses, Finding& finding) {
  constexpr double kData = 10e6;  // bytes per second of the claimed time: more than libraries or logs have
  const std::vector<NamedCode> code = code_in(a, finding.claims);
  if (finding.cause || in_pauses || code.empty() || code[0].least < a.limits[Threshold::kMajority] || s.helpers > 0 ||
      s.owner_threads >= a.limits[Threshold::kOtherThreads] || !may_be(finding, Cause::kInputInMainProcess) ||
      ran_at_most(s, finding.claims) < a.limits[Threshold::kCovers] || s.owner_passes < a.limits[Threshold::kCovers] ||
      s.owner_passed.value_or(0) < kData * part_claimed(finding.claims))
    return;
  std::erase_if(finding.candidates, [](Cause cause) {
    return cause == Cause::kHostGraphBuilding || cause == Cause::kLaunchBound || cause == Cause::kSyncPoints;
  });
  put_first(finding.candidates, Cause::kInputInMainProcess);
  finding.title = "The GPU waits while the training process reads files, and for what it does with them";
  finding.evidence.push_back(
      fmt::format("over whole readings it read {}/s through files and pipes, from memory or storage; its other threads "
                  "hardly ran",
                  human_bytes(static_cast<std::int64_t>(*s.owner_passed))));
  finding.advice = "read and prepare it in other processes (loader workers), or store it as it is used";
  finding.would_overturn = info(Cause::kInputInMainProcess).overturn;
}

}  // namespace

bool all_asleep(const Analysis& a, const HostSummary& s, const Claims& claims) {
  return hardly(a, s.owner_cpu + s.owner_delay + s.owner_threads, claims);
}

Claims asleep_in(const Analysis& a, const Claims& claims) {
  std::map<std::int32_t, Claims> by_place;
  for (const ClaimedPiece& piece : claims)
    if (piece.where >= 0) by_place[piece.where].push_back(piece);
  Claims asleep;
  for (const auto& [place, there] : by_place)
    if (a.material(length(there)) && all_asleep(a, host_during(a.job, a.devices, there), there))
      asleep = united(asleep, there);
  return asleep;
}

bool main_asleep(const Analysis& a, const HostSummary& s, const Claims& claims) {
  return hardly(a, s.owner_cpu + s.owner_delay, claims);
}

bool mostly_asleep(const Analysis& a, const HostSummary& s, const Claims& claims) {
  return ran_at_most(s, claims) < a.limits[Threshold::kMajority] || only_waits(a, s, claims);
}

bool at_times_only(const Analysis& a, const Claims& claims) {
  const std::vector<NamedCode> code = code_in(a, claims);
  if (code.empty() || code[0].least < a.limits[Threshold::kMajority] ||
      !is_of_one_account(a, code[0].where, main_account(claims)))
    return false;
  const auto role = a.code.roles.find(code[0].place);
  return role != a.code.roles.end() &&
         (role->second.recurs == Recurs::kAtTimes || role->second.recurs == Recurs::kEachEpoch);
}

namespace {

// Where its name says that it compiles, and what was seen once is nothing that comes with each step or epoch.
void follow_the_name(const Analysis& a, Finding& finding) {
  if (finding.cause || finding.candidates.empty()) return;
  if (is_called_compiling(a, finding.claims)) put_first(finding.candidates, Cause::kCompileWarmup);
  const auto role = a.code.roles.find(code_in(a, finding.claims).front().place);
  if (role == a.code.roles.end() || role->second.recurs != Recurs::kOnce) return;
  Causes once = finding.candidates;
  std::erase_if(
      once, [](Cause cause) { return cause == Cause::kHostGraphBuilding || cause == Cause::kDuplicatePreprocessing; });
  if (!once.empty()) finding.candidates = std::move(once);
}

}  // namespace

void follow_the_stacks(const Analysis& a, const HostSummary& s, bool in_pauses, Finding& finding) {
  say_with_stacks(a, s, in_pauses, finding);
  if (in_pauses && !finding.cause && !main_asleep(a, s, finding.claims)) follow_the_rhythm(a, s, finding);
  follow_the_family(a, s, in_pauses, finding);
  follow_the_plain(a, s, finding);
  follow_the_reading(a, s, in_pauses, finding);
  follow_the_writing(a, finding);
  follow_the_name(a, finding);
  if (!finding.cause && finding.candidates.size() == 1)
    finding.cause = finding.candidates.front(), finding.candidates.clear();
}

}  // namespace headroom::diagnose
