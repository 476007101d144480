// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/human.h"
#include "diagnose/core_waits.h"
#include "diagnose/host_memory.h"
#include "diagnose/host_stacks.h"
#include "diagnose/host_waits.h"
#include "diagnose/idle_parts.h"
#include "diagnose/named_code.h"
#include "diagnose/named_waits.h"
#include "diagnose/rhythm.h"
#include "diagnose/rules.h"
#include "diagnose/words.h"
#include "diagnose/work_during.h"
#include "model/advice_words.h"
#include "model/cores.h"
#include "model/loop_accounts.h"
#include "model/named_causes.h"
#include "model/observations.h"
#include "stacks/families.h"

namespace headroom::diagnose {

namespace {

constexpr std::string_view kCondition = "if the GPU never waited for its data";

// What its helpers were seen to wait for, and how much of the time they worked.
struct Loader {
  bool storage = false;  // blocked on storage, or on a file system of the network
  bool network = false;  // asleep on a connection
  bool asleep = false;   // on a timer
  bool starved = false;  // for a core
  double busy = 0;       // of each worker's time from the first kernel to the last: ran, or waited for a core
  double unasked = 0;    // ... waited for the process on the GPU to ask for more
  double paused = 0;     // of the time from the first kernel to the last: the GPU waited for something else
};

Loader loader_of(const Analysis& a, const HostSummary& s) {
  const double enough = a.limits[Threshold::kHelpersInDisk];
  Loader loader;
  loader.storage = s.helper_looks.blocked_share() >= enough ||
                   s.helper_looks.share({WaitChannel::kDisk, WaitChannel::kNetworkFs}) >= enough ||
                   s.owner_io.value_or(0) >= a.limits[Threshold::kOwnerIo];
  loader.network = s.helper_looks.share({WaitChannel::kSocket}) >= enough;
  loader.asleep = s.helper_looks.share({WaitChannel::kSleep}) >= enough;
  loader.starved = s.helper_delay >= a.limits[Threshold::kHelpersStarved];
  const HostSummary loop =
      host_during(a.job, a.devices, claim(a, [](std::size_t, const Slice& slice) {
                    return slice.account != Account::kStartup && slice.account != Account::kTeardown;
                  }));
  loader.busy = loop.helper_cpu / static_cast<double>(std::max<std::size_t>(1, loop.helpers)) + loop.helper_delay;
  loader.unasked = share_for_owners(a, loop.helper_looks);
  Nanos paused = 0, all = 0;
  for (const LedgerEntry& entry : a.ledger.entries) {
    if (entry.account == Account::kStartup || entry.account == Account::kTeardown) continue;
    all += entry.ns;
    if (entry.account != Account::kInput && !is_busy(entry.account)) paused += entry.ns;
  }
  loader.paused = static_cast<double>(paused) / static_cast<double>(std::max<Nanos>(1, all));
  return loader;
}

void wait_for_storage(Finding& finding) {
  finding.cause = Cause::kSlowStorage;
  finding.title = "The GPU waits for data that waits for storage";
  finding.advice = "copy the data to a local disk, or pack small files into larger ones";
}

void wait_for_a_connection(const Analysis& a, const HostSummary& s, Finding& finding) {
  wait_for_storage(finding);
  finding.title = "The GPU waits for data that comes over a connection";
  finding.would_overturn =
      "fetch one sample by hand from the same address while the job stands still: if it comes at once, this is wrong";
  const auto host = host_time(a.host);
  if (!host || !workers_sleep(*host)) return;
  finding.advice = fmt::format(
      "more requests at a time: more workers than the {} (waiting themselves, they need hardly a core), or several in "
      "flight in each; or copy the data to a local disk, or pack small files into larger ones",
      s.helpers);
}

// Its workers do, for storage or for a connection.
void waits_outside(const Analysis& a, const HostSummary& s, const Loader& loader, Finding& finding) {
  if (loader.storage)
    wait_for_storage(finding);
  else
    wait_for_a_connection(a, s, finding);
  if (s.helper_delay + s.owner_delay < a.limits[Threshold::kHelpersStarved] / 2)
    finding.told_apart_from = {"too few cores: the workers slept, they did not wait for one"};
}

std::string no_program_lived(const Analysis& a) {
  return fmt::format("no process that it started lived for {} of the time",
                     human_percent(a.limits[Threshold::kJobLifetime]));
}

// Each begins when it is asked for, so that nothing is ready before.
void short_programs(Finding& finding) {
  finding.candidates = {Cause::kInputTooFewWorkers, Cause::kInputInMainProcess, Cause::kSlowStorage};
  finding.title = "The GPU waits while short programs of the job prepare its data";
  finding.advice = "prepare the data once, or in worker processes that stay";
  finding.would_overturn = info(Cause::kInputInMainProcess).overturn;
}

// Whether its main thread slept for much of it elsewhere than at storage. Where its stacks sleep in other code, that it
// was seen on a timer is of that.
bool slept_elsewhere(const Analysis& a, const HostSummary& s, const Finding& finding) {
  const bool timer_elsewhere = share_in(a, finding.claims, stacks::Family::kSleep) < a.limits[Threshold::kMaterial] &&
                               std::any_of(a.code.families.begin(), a.code.families.end(),
                                           [](const auto& known) { return known.second == stacks::Family::kSleep; });
  return s.owner_looks.share({WaitChannel::kSocket, WaitChannel::kPipe, WaitChannel::kPoll}) +
             (timer_elsewhere ? 0 : s.owner_looks.share({WaitChannel::kSleep})) >=
         a.limits[Threshold::kHelpersInDisk];
}

// Code of the training process is seen to load, and hardly waits for storage.
void loads_itself(const Analysis& a, const HostSummary& s, Finding& finding) {
  const bool slept = slept_elsewhere(a, s, finding);
  // The kernels between need nothing of its CPU time, unless it spins.
  const double covers =
      a.limits[Threshold::kCovers] * (slept || spins(a, finding.claims) ? 1.0 : part_claimed(finding.claims));
  const bool ran = s.owner_cpu + (slept ? 0 : s.owner_delay) >= covers;
  if (ran)
    finding.cause = Cause::kInputInMainProcess;
  else if (s.owner_delay >= a.limits[Threshold::kHelpersStarved])
    finding.candidates = {Cause::kInputInMainProcess, Cause::kCpuOversubscribed};
  else
    finding.candidates = {Cause::kInputInMainProcess, Cause::kSlowStorage};
  if (ran && s.owner_delay > s.owner_cpu && may_want_cores(a, s, finding.claims))
    finding.less_likely = {Cause::kCpuOversubscribed};  // what it loads wants a core for longer than it has one
  finding.title = "The GPU waits while the training process loads its data itself";
  const std::string_view workers =
      words_for(a.meta, {"loader workers (num_workers)", "threads or processes that load"});
  finding.advice =
      s.owner_cpu + s.owner_threads < kHardlyACore * part_claimed(finding.claims)
          ? fmt::format("several {}: while they wait as this process does, they need hardly a core", workers)
      : s.busy_cores && s.cores_full(a.limits[Threshold::kCoresFull])
          ? fmt::format("{}; all of the {:.3g} usable cores are in use, so that they get what others leave them",
                        workers, s.usable_cores)
          : fmt::format("{}, as many as cores are free of the {:.3g} usable ones", workers, s.usable_cores);
  finding.would_overturn = info(Cause::kInputInMainProcess).overturn;
}

// Without worker processes: the process on the GPU reads its data itself.
void reads_itself(const Analysis& a, const HostSummary& s, Finding& finding) {
  if (s.unseen_cpu >= a.limits[Threshold::kHelpersAtWork]) {
    short_programs(finding);
    finding.evidence.push_back(fmt::format("processes that it started and that ended within a sample used {} cores",
                                           human_figure(s.unseen_cpu, 2)));
    return;
  }
  const double enough = a.limits[Threshold::kHelpersInDisk];
  const bool blocked = s.owner_looks.blocked_share() >= enough ||
                       s.owner_looks.share({WaitChannel::kDisk, WaitChannel::kNetworkFs}) >= enough ||
                       s.owner_io.value_or(0) >= a.limits[Threshold::kOwnerIo];
  if (!blocked && !code_in(a, finding.claims).empty()) return loads_itself(a, s, finding);
  wait_for_storage(finding);
  finding.title = "The GPU waits while the training process reads its data from storage";
  finding.advice =
      "read ahead in worker processes, copy the data to a local disk, or pack small files into larger ones";
  if (blocked && s.owner_cpu < a.limits[Threshold::kCovers]) return;
  finding.cause.reset();
  finding.candidates = {Cause::kSlowStorage, Cause::kInputInMainProcess};
  if (!blocked) std::reverse(finding.candidates.begin(), finding.candidates.end());
}

void waits_for_threads(const Analysis& a, const HostSummary& s, Finding& finding) {
  finding.by_threads = true;
  finding.title = "The GPU waits for what another thread of the training process prepares";
  finding.evidence.insert(finding.evidence.begin(), "meanwhile the main thread waits until that thread has it");
  finding.would_overturn = "train on one cached batch: if the step time stays the same, the input is not the cause";
  if (s.owner_threads >= a.limits[Threshold::kCovers] * part_claimed(finding.claims)) {
    finding.cause = Cause::kInputTooFewWorkers;
    finding.advice = words_for(
        a.meta, {"prepare it in several processes (num_workers, multiprocessing), or make that code cheaper: threads "
                 "take turns at Python code, as they share one interpreter (GIL)",
                 "prepare it in several threads or processes, or make that code cheaper: threads take turns at Python "
                 "code, as they share one interpreter (GIL)"});
    return;
  }
  finding.asleep = s.owner_threads < kHardlyACore * part_claimed(finding.claims);
  finding.candidates = {Cause::kSlowStorage, Cause::kInputTooFewWorkers};
  constexpr double kHardly = 4e3;  // bytes per second: a page of a library now and then
  if (s.owner_read && *s.owner_read < kHardly) {
    std::reverse(finding.candidates.begin(), finding.candidates.end());
    // It may have nothing to pass on: who makes requests is away.
    if (finding.asleep) finding.candidates.push_back(Cause::kInteractiveHoldingGpu);
  }
  finding.evidence.push_back(
      fmt::format("that thread sleeps or waits itself for {} of it: all but the main thread used {} cores",
                  finding.asleep ? "most" : "a part", human_figure(s.owner_threads, 2)));
  finding.advice = "let more threads wait at a time, or read further ahead; or make what that thread waits for faster";
}

// Whether some helper lives as long as the work, or takes the place of one that ended: a worker, not a program that is
// run now and then. Stacks may say that it is workers that are waited for.
bool has_workers(const Analysis& a, const IdleParts& parts, const Claims& claims) {
  if (parts.restarts.workers > 0) return true;
  const std::vector<NamedCode> code = code_in(a, claims);
  if (!code.empty() && code[0].place == info(stacks::Family::kLoaderWait).label &&
      code[0].share >= a.limits[Threshold::kMajority])
    return true;
  const double least = a.limits[Threshold::kJobLifetime] * static_cast<double>(a.window.length());
  std::set<SourceId> below;
  for (const ContextUse& use : a.job.uses)
    if (use.ours && use.process)
      for (const SourceId id : descendants(a.job, *use.process)) below.insert(id);
  return std::any_of(a.processes.begin(), a.processes.end(), [&](const RecordedProcess& process) {
    const Nanos lived = process.facts.end.value_or(a.window.end) - process.facts.start;
    return below.contains(process.source) && static_cast<double>(lived) >= least;
  });
}

void runs_programs(const Analysis& a, Finding& finding, bool starved) {
  finding.candidates = {Cause::kEpochEndHostWork, Cause::kValidation, Cause::kInputInMainProcess,
                        Cause::kInputTooFewWorkers};
  if (starved) finding.candidates.push_back(Cause::kCpuOversubscribed);
  finding.title = "The GPU waits while a program runs that the job started";
  finding.advice = "see in the job's own log what it starts there, then start it beside the training or less often";
  finding.would_overturn = "ps --forest while it waits: if the programs only feed the training, the loader is too slow";
  finding.evidence.push_back(no_program_lived(a));
}

// Whether its workers were seen at their work far more than they ran or wanted to.
bool wait_themselves(const Analysis& a, const HostSummary& s, double at_work) {
  const double wanted = s.helper_cpu / static_cast<double>(std::max<std::size_t>(1, s.helpers)) + s.helper_delay;
  return at_work >= a.limits[Threshold::kCovers] && wanted < at_work / 2;
}

// More of them only where cores are left, over the whole time: a plan advises the same (plan/shape.cc).
bool room_for_workers(const Analysis& a) {
  const auto host = host_time(a.host);
  return !host || workers_sleep(*host) || most_workers(*host) > host->helpers;
}

// Where stacks were read and none is in a loader that is known, or there are none as it is no Python, what it waits for
// may be environments, or servers.
bool loader_unknown(const Analysis& a, const Claims& claims) {
  using stacks::Family;
  const bool unseen = code_in(a, claims).empty();
  if (unseen || a.code.loader_traced) return unseen && without_python(a.meta);
  const auto of_loader = [](Family family) {
    return family == Family::kLoaderFetch || family == Family::kLoaderWait || family == Family::kCollate ||
           family == Family::kTransform || family == Family::kDatasetIndex;
  };
  return std::none_of(a.code.families.begin(), a.code.families.end(),
                      [&](const auto& place) { return of_loader(place.second); });
}

constexpr Wording kMoreWorkers{"more loader workers", "more threads or processes that load"};

std::string workers_advice(const Analysis& a, const HostSummary& s, const Claims& claims) {
  const bool unknown = loader_unknown(a, claims);
  const std::string_view more = unknown ? "more worker processes" : words_for(a.meta, kMoreWorkers);
  const std::string_view kept = unknown ? "" : " persistent,", cheaper = unknown ? "code in them" : "transforms";
  const auto host = host_time(a.host);
  const std::string now = fmt::format("there {} {}", s.helpers == 1 ? "is" : "are", s.helpers);
  if (!host) return fmt::format("{} ({}),{} or cheaper {}", more, now, kept, cheaper);
  if (workers_sleep(*host))
    return fmt::format("{} ({}; waiting themselves, they need hardly a core),{} or what they wait for made faster",
                       more, now, kept);
  if (room_for_workers(a))
    return fmt::format("{} ({}; {} of {:.3g} usable cores can be theirs, if nobody else needs them),{} or cheaper {}",
                       more, now, human_figure(cores_for_helpers(*host), 2), host->usable_cores, kept, cheaper);
  return fmt::format("cheaper {} (done once and stored), or more cores: the {:.3g} usable ones carry no more workers",
                     cheaper, host->usable_cores);
}

// Most of the time lies where processes were started that may have taken the place of workers.
void may_be_restarts(const Analysis& a, const IdleParts& parts, Finding& finding) {
  const auto share = [&](const Claims& claims) {
    return static_cast<double>(length(common(finding.claims, claims))) / static_cast<double>(finding.cost());
  };
  const double after = share(parts.restarts.maybe);
  if (after < a.limits[Threshold::kMajority]) return;
  if (finding.cause) finding.candidates = {*finding.cause};
  finding.cause.reset();
  finding.candidates.insert(finding.candidates.begin(), Cause::kEpochWorkerRestart);
  finding.evidence.push_back(
      fmt::format("{} of it lies around the starts of processes that run the same command as the one on the GPU, each "
                  "after another of them had ended: they may be workers that are started anew",
                  human_percent(after)));
  finding.advice = fmt::format("keep the workers between epochs{}; if they are kept: {}",
                               words_for(a.meta, {" (persistent_workers=True)", ""}), finding.advice);
}

// "the data loader, whose workers wait"; of what need not be one "its worker processes, which wait".
std::string waits_for_workers(const Analysis& a, const Claims& claims, std::string_view then) {
  const bool unknown = loader_unknown(a, claims);
  return fmt::format("The GPU waits for {}{}{}", unknown ? "the job's worker processes" : "the data loader",
                     then.empty() ? "" : (unknown ? ", which " : ", whose workers "), then);
}

// One of several workers that does nearly all of what they do: others wait for it, or have nothing to do.
void say_who_works(const Analysis& a, const HostSummary& s, Finding& finding) {
  constexpr double kNearlyAll = 0.8;
  const auto work = children_at_work(a, finding.claims);
  if (!work || s.helpers < 2 || work->most < kNearlyAll * work->cores) return;
  finding.evidence.push_back(fmt::format("{} of what they used then is one's, process {}",
                                         human_percent(work->most / work->cores), work->busiest.pid));
  finding.advice = fmt::format(
      "see what process {} does that the others do not (headroom stacks): give them a share "
      "of it, or make it cheaper; if they take turns with whole batches: {}",
      work->busiest.pid, finding.advice);
  finding.remedy = Remedy{.fix = "more_loader_workers",
                          .title = "Share out what one worker does",
                          .why_safe = "order of loading may change",
                          .verify = "each worker uses about as much of a core; time per step",
                          .undo = "as before"};
}

// What is not at work because nobody asked for more has more ready than is taken, unless that was in other pauses.
bool has_more_ready(const Analysis& a, const Loader& loader) {
  constexpr double kNearlyAll = 0.9;
  return loader.unasked >= kNearlyAll * (1 - loader.busy) &&
         loader.busy + loader.paused < a.limits[Threshold::kWorkersFull];
}

// On average its workers are fast enough.
void has_slow_batches(const Analysis& a, const HostSummary& s, const Loader& loader, Finding& finding) {
  finding.candidates = {Cause::kBurstyInput, Cause::kInputTooFewWorkers};
  if (s.helper_read.value_or(0) >= a.limits[Threshold::kReading]) finding.candidates.push_back(Cause::kSlowStorage);
  const bool ahead = has_more_ready(a, loader);
  finding.evidence.push_back(
      fmt::format("from the first kernel to the last a worker was busy for {}{}", human_percent(loader.busy),
                  ahead ? ", and had nothing to do for the rest: on average they are fast enough"
                        : ": on average they are fast enough, or wait for something themselves"));
  if (ahead) finding.cause = Cause::kBurstyInput, finding.candidates.clear();
  const bool unknown = loader_unknown(a, finding.claims);  // environments answer an action, and run ahead of none
  finding.advice =
      unknown ? "see what they do in the longest of these waits: make it cheaper, or ask for it ahead of the step"
              : "look at the slowest batches: larger prefetch";
  if (!unknown && room_for_workers(a)) finding.advice += fmt::format(", or {}", words_for(a.meta, kMoreWorkers));
  // What is ready waits, too, for a main thread that has no core.
  if (!finding.cause && may_want_cores(a, s, finding.claims)) finding.candidates.push_back(Cause::kCpuOversubscribed);
  say_who_works(a, s, finding);
}

// Whether the training process itself ran, or wanted to, for most of the time in which it takes what its workers made,
// and in hardly any other idle time of its loop: who reads off a pipe what another process made unpickles it, too. Not
// where it comes at some times only, as when it starts them.
bool takes_it_itself(const Analysis& a, const IdleParts& parts, const HostSummary& s, const Claims& claims) {
  const Nanos starts = length(common(claims, united(parts.restarts.pauses, parts.restarts.maybe)));
  if (is_most(a, starts, length(claims)) || at_times_only(a, claims)) return false;
  const Claims loop =
      claim(a, [](std::size_t, const Slice& slice) { return in_loop(slice.account) && !is_busy(slice.account); });
  return is_most(a, length(claims), length(loop)) && !spins(a, claims) &&
         s.owner_cpu + s.owner_delay >= a.limits[Threshold::kCovers] * part_claimed(claims);
}

void takes_from_workers(const Analysis& a, const HostSummary& s, const Loader& loader, Finding& finding) {
  finding.title = "The GPU waits while the training process takes over what its workers made";
  finding.candidates = {Cause::kInputInMainProcess};
  if (has_more_ready(a, loader))
    finding.told_apart_from.push_back(
        "data loader too slow: its workers had nothing to do while they were not at work");
  else
    finding.candidates.push_back(Cause::kInputTooFewWorkers);
  if (may_want_cores(a, s, finding.claims))
    finding.candidates.insert(finding.candidates.begin() + (s.owner_delay > s.owner_cpu ? 0 : 1),
                              Cause::kCpuOversubscribed);
  if (finding.candidates.size() == 1) finding.cause = Cause::kInputInMainProcess, finding.candidates.clear();
  finding.evidence.insert(finding.evidence.begin(),
                          "for most of this time its main thread can have run, or been ready to: what another process "
                          "hands over has to be read and unpickled in this one");
  finding.advice = words_for(
      a.meta, {"hand over less often and more at a time (larger batches, made by the workers), and as tensors "
               "in shared memory: arrays and lists are pickled, and unpickled here",
               "hand over less often and more at a time, through shared memory"});
  finding.remedy = Remedy{.fix = "cheaper_loading", .title = "Hand over more cheaply what the workers made"};
  finding.would_overturn = "headroom stacks REC: if its main thread sleeps in its wait for the workers, this is wrong";
}

void needs_workers(const Analysis& a, const HostSummary& s, const Loader& loader, Finding& finding) {
  const double at_work = workers_at(a, finding.claims).at_work;
  const bool read_little = s.helper_read && *s.helper_read < a.limits[Threshold::kReading];
  finding.title = waits_for_workers(a, finding.claims, "");
  finding.advice = workers_advice(a, s, finding.claims);
  finding.would_overturn = info(Cause::kInputTooFewWorkers).overturn;
  if (loader.asleep) {
    finding.candidates = {Cause::kSlowStorage, Cause::kInputTooFewWorkers, Cause::kBurstyInput};
    if (read_little) std::rotate(finding.candidates.begin(), finding.candidates.begin() + 1, finding.candidates.end());
  } else if (wait_themselves(a, s, at_work)) {
    finding.candidates = {Cause::kSlowStorage, Cause::kInputTooFewWorkers};
    finding.title = waits_for_workers(a, finding.claims, "wait themselves");
    finding.evidence.push_back(
        fmt::format("its workers were at their work in {} of the looks at their stacks and used the CPU for {}: there "
                    "they wait for something, such as storage, a connection, a pipe or a lock",
                    human_percent(at_work), human_percent(s.helper_cpu / static_cast<double>(s.helpers))));
    finding.advice = "read ahead there, or copy the data to a local disk";
    if (room_for_workers(a))
      finding.advice += fmt::format("; {} only if that can serve them", words_for(a.meta, kMoreWorkers));
  } else if (loader.busy >= a.limits[Threshold::kWorkersFull]) {
    finding.cause = Cause::kInputTooFewWorkers;
  } else {
    has_slow_batches(a, s, loader, finding);
  }
  if (finding.cause && read_little && s.helper_looks.count > 0)
    finding.told_apart_from.push_back("slow storage: the workers used the CPU and hardly read");
  if (s.helper_delay + s.owner_delay < a.limits[Threshold::kHelpersStarved] / 2)
    finding.told_apart_from.push_back("too few cores: the workers hardly waited for one");
}

// What is read in long pauses, or at some times only, and was before the first kernel, may be the same each time; so
// may what comes at some times only in a function of the job's own.
void may_be_prepared_anew(const Analysis& a, Finding& finding) {
  const bool at_times = at_times_only(a, finding.claims);
  const bool apart = at_times || 2 * length(in_pauses(a, finding.claims)) >= finding.cost();
  if (!names(finding, Cause::kInputInMainProcess) || may_be(finding, Cause::kSlowStorage) || !apart) return;
  const auto rhythm = rhythm_of(a, finding.claims);
  const bool prepares = rhythm && rhythm->prepares;
  if (!prepares && !(at_times && own_code(a, finding.claims) >= a.limits[Threshold::kMajority])) return;
  if (finding.cause) finding.candidates = possible_causes(finding);
  finding.cause.reset();
  finding.less_likely.clear();
  finding.candidates.push_back(Cause::kDuplicatePreprocessing);
  if (!prepares) return;
  finding.evidence.push_back(rhythm->sentence);
  // What is in memory already was read before, or written.
  constexpr double kHardly = 4e3;  // bytes per second
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  if (s.owner_read && *s.owner_read < kHardly) put_first(finding.candidates, Cause::kDuplicatePreprocessing);
}

// Its workers wanted a core, and had none.
void wants_cores(const Analysis& a, const HostSummary& s, Finding& finding) {
  constexpr double kLonger = 1.5;  // by judgement
  const bool too_many = static_cast<double>(s.helpers) > s.usable_cores;
  const bool threads = !one_thread_each(a.meta) && own_threads_fill_cores(s);
  const std::string more =
      s.machine_cores > s.usable_cores
          ? fmt::format("more of this machine's {:.3g} cores (the job's affinity or quota lets it use {:.3g})",
                        s.machine_cores, s.usable_cores)
          : fmt::format("more cores ({:.3g} usable here)", s.usable_cores);
  finding.advice =
      fmt::format("{}, or other load elsewhere; {}", more,
                  too_many ? (threads ? "fewer workers or threads" : "fewer workers")
                           : (threads ? "fewer threads in its workers, not fewer workers" : "not fewer workers"));
  if (s.helper_read.value_or(0) >= a.limits[Threshold::kReading]) {  // after each read they want a core again
    finding.candidates = {Cause::kSlowStorage, Cause::kCpuOversubscribed};
    finding.title = waits_for_workers(a, finding.claims, "wait for storage and for CPU cores");
  } else if (const double rested = 1 - s.helper_cpu / static_cast<double>(s.helpers) - s.helper_delay;
             rested >= kLonger * s.helper_delay) {
    // One may have the long item while the others wait for it, too.
    finding.candidates = {Cause::kCpuOversubscribed, Cause::kBurstyInput};
    finding.title = waits_for_workers(a, finding.claims, "wait for CPU cores at times");
    finding.evidence.push_back(
        fmt::format("for {} of this time each of them had nothing to do, or waited itself", human_percent(rested)));
  } else if (s.cores_full(a.limits[Threshold::kCoresFull])) {
    const bool by_it = s.owner_cpu + s.owner_threads + s.helper_cpu >= a.limits[Threshold::kMajority] * s.usable_cores;
    finding.advice += by_it ? "; more workers would share the same cores"
                            : "; more workers would take cores from what else runs on this machine";
    finding.advice += "; or make what they do cheaper";
    finding.cause = Cause::kCpuOversubscribed;
    finding.title = loader_unknown(a, finding.claims) ? "The job's worker processes wait for CPU cores"
                                                      : "The data loader's workers wait for CPU cores";
  } else {
    finding.candidates = {Cause::kCpuOversubscribed, Cause::kInputTooFewWorkers};
    finding.title = waits_for_workers(a, finding.claims, "wait for CPU cores at times");
  }
  finding.would_overturn = info(Cause::kCpuOversubscribed).overturn;
}

// What makes the data: threads or code of the process itself, programs that it runs, or its workers. Whether the last
// of it may come after the last kernel.
bool say_what_feeds(const Analysis& a, const IdleParts& parts, const HostSummary& s, const Loader& loader,
                    Finding& finding) {
  bool ends = false;
  const bool by_processes = s.helpers > 0 && s.owner_threads < a.limits[Threshold::kOtherThreads];
  if (mostly_at(a, finding.claims, a.code.feeding) && !by_processes) {
    waits_for_threads(a, s, finding);
  } else if (s.helpers == 0) {
    reads_itself(a, s, finding);
    may_be_prepared_anew(a, finding);
  } else if (2 * length(in_pauses(a, finding.claims)) >= finding.cost() && !has_workers(a, parts, finding.claims)) {
    runs_programs(a, finding, loader.starved);
    ends = true;
  } else if (!has_workers(a, parts, finding.claims) && own_code(a, finding.claims) >= a.limits[Threshold::kMajority] &&
             share_in(a, finding.claims, stacks::Family::kLoaderWait) < a.limits[Threshold::kMaterial]) {
    short_programs(finding);
    finding.evidence.push_back(no_program_lived(a));
    if (loader.starved) finding.candidates.push_back(Cause::kCpuOversubscribed);
  } else if (loader.storage || loader.network) {
    waits_outside(a, s, loader, finding);
  } else if (loader.starved) {
    wants_cores(a, s, finding);
  } else if (by_processes && takes_it_itself(a, parts, s, finding.claims)) {
    takes_from_workers(a, s, loader, finding);
  } else {
    needs_workers(a, s, loader, finding);
    may_be_restarts(a, parts, finding);
  }
  return ends;
}

}  // namespace

std::vector<Finding> idle_input(const Analysis& a, const IdleParts& parts) {
  Finding finding;
  finding.claims = open_time(a, parts, {Account::kInput});
  if (!a.material(finding.cost())) return {};
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  const Loader loader = loader_of(a, s);
  finding.tiers = "NP";
  finding.confidence = Confidence::kMedium;
  finding.evidence = {owner_sentence(s), helper_sentence(s)};
  append(finding.evidence, storage_sentences(s));
  append(finding.evidence, cores_sentence(s));
  append(finding.evidence, recurrences(a, finding.claims));
  append(finding.evidence, growth(a, finding.claims));
  const bool ends = say_what_feeds(a, parts, s, loader, finding);
  if (s.helpers > 0) name_the_workers_code(a, finding);
  if (s.helpers > 0)
    append(finding.evidence, named_places(a, s.helper_looks, "the main threads of its workers were"));
  else if (!named_places(a, s.owner_looks, "").empty())
    finding.evidence.push_back(looks_sentence(a, s.owner_looks, finding.claims));
  may_want_memory(a, s, finding);
  gains_at_most(a, finding, std::string(kCondition), ends);
  if (finding.cause == Cause::kCpuOversubscribed && s.helpers == 1)
    gains_the_wait(a, finding, s.helper_delay, s.helper_cpu, "its worker");
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
