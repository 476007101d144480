// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/human.h"
#include "diagnose/idle_parts.h"
#include "diagnose/named_code.h"
#include "diagnose/rules.h"
#include "diagnose/words.h"
#include "diagnose/work_during.h"

namespace headroom::diagnose {

namespace {

using Causes = std::vector<Cause>;

void add(Causes& causes, std::initializer_list<Cause> more) {
  for (const Cause cause : more)
    if (std::find(causes.begin(), causes.end(), cause) == causes.end()) causes.push_back(cause);
}

bool no_loader(const Analysis& a, const HostSummary& s) {
  return s.helpers == 0 && s.unseen_cpu < a.limits[Threshold::kHelpersAtWork];
}

// Pauses that are too long for a step, and the rest: what happens once in an epoch is not what happens in every step.
struct Parts {
  Claims steps, pauses;
};

Parts parts_of(const Analysis& a, const Claims& claims) {
  Parts parts;
  parts.pauses = in_pauses(a, claims);
  parts.steps = without(claims, parts.pauses);
  // Too little of one kind for a finding of its own.
  if (!a.material(length(parts.pauses)))
    parts.steps = claims, parts.pauses.clear();
  else if (!a.material(length(parts.steps)))
    parts.pauses = claims, parts.steps.clear();
  return parts;
}

// What a thread may wait for where it was seen asleep, the likeliest first.
Causes waits_in(WaitChannel channel, bool loader, bool in_pauses) {
  switch (channel) {
    case WaitChannel::kSocket:
      if (in_pauses) return {Cause::kLoggingUpload, Cause::kSlowStorage};
      return {Cause::kSlowStorage, Cause::kLoggingUpload};
    case WaitChannel::kPoll:
    case WaitChannel::kPipe:
      if (loader) return {Cause::kBurstyInput, Cause::kInputTooFewWorkers, Cause::kLoggingUpload};
      return {Cause::kLoggingUpload, Cause::kSlowStorage};
    case WaitChannel::kFutex:
      return {Cause::kGilContention, Cause::kBurstyInput, Cause::kPageableCopies};
    case WaitChannel::kSleep:
      return {Cause::kPageableCopies, Cause::kLoggingUpload, Cause::kSyncPoints};
    case WaitChannel::kDisk:
    case WaitChannel::kNetworkFs:
      return {Cause::kSlowStorage, Cause::kCheckpointSync};
    case WaitChannel::kTerminal:
      return {Cause::kInteractiveHoldingGpu};
    case WaitChannel::kChild:
      return {Cause::kInputInMainProcess, Cause::kCheckpointSync};
    case WaitChannel::kRunning:
    case WaitChannel::kOther:
    case WaitChannel::kUnknown:
      break;
  }
  return {};
}

struct Seen {
  double share;
  WaitChannel channel;
};

// Where it was seen asleep, most often first.
std::vector<Seen> seen_in(const Looks& looks, double least) {
  std::vector<Seen> seen;
  for (std::size_t i = 0; i < looks.in.size(); ++i) {
    const auto channel = static_cast<WaitChannel>(i);
    if (const double share = looks.share({channel}); share >= least) seen.push_back({share, channel});
  }
  std::stable_sort(seen.begin(), seen.end(), [](const Seen& x, const Seen& y) { return x.share > y.share; });
  return seen;
}

std::string_view place_of(WaitChannel channel) {
  constexpr std::array<std::string_view, 12> kPlaces{
      "on the CPU",          "in poll",         "on a lock",   "on a timer",
      "on a pipe",           "on a connection", "on the disk", "on a remote file system",
      "for a child process", "at a terminal",   "elsewhere",   "unknown"};
  return kPlaces[static_cast<std::size_t>(channel)];
}

std::string looks_sentence(const std::vector<Seen>& seen) {
  std::string text = "when looked at in this time, its main thread was";
  for (std::size_t i = 0; i < seen.size(); ++i)
    text += fmt::format("{} {} ({})", i == 0 ? "" : ",", place_of(seen[i].channel), human_percent(seen[i].share));
  return text;
}

// What the main thread may have waited for that no kernel of its own does: where it was seen asleep, and what its
// process read and wrote meanwhile.
Causes waited_for(const Analysis& a, const HostSummary& s, bool in_pauses) {
  Causes causes;
  for (const WaitChannel channel : {WaitChannel::kSocket, WaitChannel::kDisk, WaitChannel::kNetworkFs})
    if (s.waiting_in({channel}) >= a.limits[Threshold::kChannelShare])
      for (const Cause cause : waits_in(channel, s.helpers > 0, in_pauses)) add(causes, {cause});
  if (s.owner_read.value_or(0) >= a.limits[Threshold::kReading]) add(causes, {Cause::kSlowStorage});
  if (s.owner_write.value_or(0) >= a.limits[Threshold::kReading])
    add(causes, {in_pauses ? Cause::kCheckpointSync : Cause::kLoggingUpload});
  return causes;
}

// Of the intervals of the claimed time only a part is claimed, and what ran in the rest counts, too.
bool hardly(const Analysis& a, double ran, const Claims& claims) {
  constexpr double kHardly = 0.25;  // of the claimed part
  return ran < std::max(a.limits[Threshold::kHelpersAtWork], kHardly * part_claimed(claims));
}

bool notebook(const Analysis& a) {
  std::set<SourceId> owners;
  for (const ContextUse& use : a.job.uses)
    if (use.ours && use.process) owners.insert(*use.process);
  return std::any_of(a.processes.begin(), a.processes.end(), [&](const RecordedProcess& process) {
    const std::string& command = process.facts.cmdline;
    return owners.contains(process.source) &&
           (command.find("ipykernel") != std::string::npos || command.find("colab_kernel") != std::string::npos);
  });
}

// Who types at a notebook, or asks a server, lets it wait as long as it pleases.
void may_wait_for_somebody(const Analysis& a, const HostSummary& s, bool in_pauses, Finding& finding) {
  if (!in_pauses) return;
  if (notebook(a)) {
    finding.candidates.insert(finding.candidates.begin(), Cause::kInteractiveHoldingGpu);
    finding.evidence.push_back("the process on the GPU is the kernel of a notebook: it waits for whoever types");
  } else if (s.waiting_in({WaitChannel::kPoll, WaitChannel::kPipe}) >= a.limits[Threshold::kMajority]) {
    add(finding.candidates, {Cause::kInteractiveHoldingGpu});
  }
}

// A process of the job beside the one on the GPU, such as the other end of a pipe, may be what it waits for.
void name_the_neighbour(const Analysis& a, Finding& finding) {
  std::set<SourceId> known;
  for (const ContextUse& use : a.job.uses)
    if (use.ours && use.process) {
      known.insert(*use.process);
      for (const SourceId id : descendants(a.job, *use.process)) known.insert(id);
    }
  const Work work = work_during(a, finding.claims, [&](const RecordedProcess& process) {
    return process.facts.in_job && !known.contains(process.source);
  });
  if (work.most < a.limits[Threshold::kOtherThreads]) return;
  finding.evidence.push_back(
      fmt::format("meanwhile process {} of the job ({}), which is not on a GPU, used {:.2g} cores", work.busiest.pid,
                  name_of(work.busiest), work.most));
  std::erase(finding.candidates, Cause::kInputTooFewWorkers);
  finding.candidates.insert(finding.candidates.begin(), Cause::kInputTooFewWorkers);
  finding.advice =
      fmt::format("see whether it waits for what process {} makes; if so, make that faster, or let several make it",
                  work.busiest.pid);
}

// What the finding says once stacks have named the code: these tell where it was, not whether it ran.
void say_with_stacks(const Analysis& a, const HostSummary& s, bool in_pauses, Finding& finding) {
  finding.title =
      in_pauses ? "The GPU pauses for code of the training process" : "The GPU waits for code of the training process";
  const double main = s.owner_cpu + s.owner_delay;
  if (hardly(a, main, finding.claims) && s.owner_threads >= a.limits[Threshold::kOtherThreads] &&
      s.waiting_in({WaitChannel::kFutex}) >= a.limits[Threshold::kMajority]) {
    finding.title = "The GPU waits while the main thread of the training process waits on a lock";
    finding.candidates = {Cause::kGilContention, Cause::kHostGraphBuilding, Cause::kBurstyInput};
    if (no_loader(a, s)) finding.candidates.push_back(Cause::kInputInMainProcess);
  } else if (hardly(a, main + s.owner_threads, finding.claims)) {
    finding.title = in_pauses ? "The GPU pauses while the training process sleeps or waits itself"
                              : "The GPU waits while the training process sleeps or waits itself";
    finding.candidates = {Cause::kLoggingUpload, Cause::kSlowStorage, Cause::kBurstyInput};
    if (no_loader(a, s)) finding.candidates.push_back(Cause::kInputInMainProcess);
    may_wait_for_somebody(a, s, in_pauses, finding);
  } else if (hardly(a, main, finding.claims)) {
    finding.title = "The GPU waits while the main thread sleeps or waits, and other threads of its process run";
    finding.candidates = {Cause::kLoggingUpload, Cause::kSlowStorage, Cause::kBurstyInput, Cause::kGilContention};
    if (no_loader(a, s)) finding.candidates.push_back(Cause::kInputInMainProcess);
  } else if (std::erase(finding.candidates, Cause::kLoggingUpload) > 0) {
    // Where it sleeps on a connection, in code that no loader has: rather what it sends than what it reads.
    finding.candidates.insert(finding.candidates.begin(), Cause::kLoggingUpload);
  }
  // Asleep on a timer, and nothing was read: that is no storage. A socket or a lock may be one behind a library.
  const bool timer = s.waiting_in({WaitChannel::kSleep}) >= a.limits[Threshold::kMajority];
  if (timer && s.owner_read && *s.owner_read < 1) std::erase(finding.candidates, Cause::kSlowStorage);
  if (!in_pauses && a.kernel_waits.share >= a.limits[Threshold::kChannelShare])
    finding.evidence.push_back(
        fmt::format("it waits for its kernels in {}, in {} of the looks at its stacks: what comes "
                    "after that does not overlap with them",
                    a.kernel_waits.place, human_percent(a.kernel_waits.share)));
  finding.advice = "make that code cheaper, or let it overlap with the kernels: ahead of the step, or beside it";
  if (hardly(a, main + s.owner_threads, finding.claims)) name_the_neighbour(a, finding);
  finding.would_overturn = "headroom stacks shows other functions while the GPU is idle";
  // Its stacks do not say that it waits for another process of the job; that one's do not say that it does not.
  if (const auto wait = peer_in(a, finding.claims, false); wait && hardly(a, main, finding.claims)) {
    finding.title += ", perhaps for another of its job";
    finding.evidence.insert(finding.evidence.begin(), peer_sentence(a, *wait));
    finding.candidates.insert(finding.candidates.begin(), {Cause::kStraggler, Cause::kExposedCommunication});
    finding.advice =
        fmt::format("see whether it waits there for process {}, and if so, why that one takes longer", wait->peer_pid);
  }
}

// Where stacks name a family that is a cause of its own, rules of the user's among them, the finding is about that.
void follow_the_family(const Analysis& a, Finding& finding) {
  std::map<stacks::Family, Nanos> families;
  for (const ClaimedPiece& piece : finding.claims) {
    if (piece.where < 0) continue;
    const auto known = a.families.find(a.ledger.places[static_cast<std::size_t>(piece.where)]);
    if (known != a.families.end()) families[known->second] += piece.end - piece.begin;
  }
  constexpr std::array kCauses{std::pair(stacks::Family::kLogging, Cause::kLoggingUpload),
                               std::pair(stacks::Family::kGraph, Cause::kHostGraphBuilding),
                               std::pair(stacks::Family::kCompile, Cause::kCompileWarmup)};
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
  }
}

Finding host_code(const Analysis& a, Claims claims, bool in_pauses) {
  Finding finding;
  finding.claims = std::move(claims);
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  finding.tiers = "NP";
  finding.confidence = Confidence::kMedium;
  finding.title = in_pauses ? "The GPU pauses while code of the training process runs on the CPU"
                            : "The GPU waits for code of the training process on the CPU";
  finding.evidence = {owner_sentence(s), helper_sentence(s)};
  append(finding.evidence, storage_sentences(s));
  append(finding.evidence, recurrences(a));
  const bool threads = s.owner_threads >= a.limits[Threshold::kOtherThreads];
  // One that spins may have wanted its core while its kernels ran.
  const bool spins = std::any_of(finding.claims.begin(), finding.claims.end(),
                                 [&](const ClaimedPiece& piece) { return a.devices[piece.device].spins; });
  const bool starved = s.owner_delay > s.owner_cpu + s.owner_threads && !spins;
  Causes waits = waited_for(a, s, in_pauses);
  // Who sleeps on a timer does not want a core then: it did at another time of the same readings.
  if (starved && s.waiting_in({WaitChannel::kSleep}) >= a.limits[Threshold::kChannelShare])
    for (const Cause cause : waits_in(WaitChannel::kSleep, s.helpers > 0, in_pauses)) add(waits, {cause});
  if (const auto seen = seen_in(s.owner_looks, a.limits[Threshold::kChannelShare]); !waits.empty() && !seen.empty())
    finding.evidence.push_back(looks_sentence(seen));
  if (starved && s.owner_delay >= a.limits[Threshold::kHelpersStarved]) {
    finding.cause = Cause::kCpuOversubscribed;
    finding.title = "The training process waits for a CPU core";
    if (!waits.empty()) {  // it sleeps between, and each time it wakes it wants a core again
      finding.cause.reset();
      finding.candidates = waits;
      add(finding.candidates, {Cause::kCpuOversubscribed});
      finding.title = "The training process waits for a CPU core, and for something else between";
    }
    finding.advice = fmt::format("fewer processes or threads on these {:.3g} cores", s.usable_cores);
  } else {
    if (in_pauses)
      finding.candidates = {Cause::kValidation, Cause::kEpochEndHostWork, Cause::kCheckpointSync,
                            Cause::kDuplicatePreprocessing};
    if (threads) add(finding.candidates, {Cause::kGilContention});
    if (no_loader(a, s)) add(finding.candidates, {Cause::kInputInMainProcess});
    add(finding.candidates, {Cause::kHostGraphBuilding});
    if (!in_pauses) add(finding.candidates, {Cause::kLaunchBound, Cause::kSyncPoints});
    for (const Cause cause : waits) add(finding.candidates, {cause});
    if (s.owner_delay >= a.limits[Threshold::kHelpersStarved]) add(finding.candidates, {Cause::kCpuOversubscribed});
    finding.advice = in_pauses
                         ? "see in the job's own log what it does in these pauses, then shorten or overlap the longest"
                         : "its stacks (py-spy dump --pid PID) name the function; or train on one cached batch: if it "
                           "is as slow, the data loader is not the cause";
    if (no_loader(a, s)) finding.told_apart_from.push_back("waiting for loader workers: there are none");
  }
  if (s.owner_io && *s.owner_io < a.limits[Threshold::kOwnerIo] / 2)
    finding.told_apart_from.push_back(
        fmt::format("storage: it was blocked on I/O for {} of the time", human_percent(*s.owner_io)));
  finding.would_overturn = "py-spy dump --pid PID: if the main thread spins in a CUDA synchronisation, this is wrong";
  if (!code_in(a, finding.claims).empty() && !finding.cause) {
    say_with_stacks(a, s, in_pauses, finding);
    follow_the_family(a, finding);
  }
  name_the_child(a, s, finding);
  gains_at_most(a, finding, "if all of it overlapped with the kernels", in_pauses);
  return finding;
}

}  // namespace

namespace {

// A finding about steps and one about pauses; one about both where they would say the same.
std::vector<Finding> of_parts(const Analysis& a, const Claims& claims,
                              Finding (*about)(const Analysis&, Claims, bool)) {
  Parts parts = parts_of(a, claims);
  std::vector<Finding> findings;
  if (!parts.steps.empty()) findings.push_back(about(a, std::move(parts.steps), false));
  if (!parts.pauses.empty()) findings.push_back(about(a, std::move(parts.pauses), true));
  const auto causes = [](const Finding& finding) {
    return std::set(finding.candidates.begin(), finding.candidates.end());
  };
  if (findings.size() == 2 && findings[0].title == findings[1].title && findings[0].cause == findings[1].cause &&
      causes(findings[0]) == causes(findings[1]))
    return only(about(a, claims, false));
  return findings;
}

}  // namespace

std::vector<Finding> idle_host_code(const Analysis& a) {
  const Claims claims = open_time(a, {Account::kHostCode});
  if (!a.material(length(claims))) return {};
  return of_parts(a, claims, host_code);
}

namespace {

// Whether there are readings of some process that held a device in the claimed time, be they of another time.
bool watched(const Analysis& a, const Claims& claims) {
  return std::any_of(a.job.uses.begin(), a.job.uses.end(), [&](const ContextUse& use) {
    return use.ours && use.process && !a.job.did[static_cast<std::size_t>(*use.process)].empty() &&
           std::any_of(claims.begin(), claims.end(), [&](const ClaimedPiece& piece) {
             return a.devices[piece.device].source == use.device && piece.begin < use.end && use.begin < piece.end;
           });
  });
}

bool spins(const Analysis& a, const Claims& claims) {
  return std::any_of(claims.begin(), claims.end(), [&](const ClaimedPiece& p) { return a.devices[p.device].spins; });
}

// The share of the claimed time that what came over PCIe takes if it is copied from pageable memory.
double copying(const Analysis& a, const Claims& claims) {
  double bytes = 0;
  for (const auto& copied : a.copied_bytes) bytes += copied.value_or(0);
  return bytes / a.limits[Threshold::kPageable] / std::max(1e-9, seconds(length(claims)));
}

// Processes with one GPU each, of which one had far fewer kernels than another: the faster ones may wait for the
// slowest.
bool ranks_unlike(const Analysis& a) {
  if (a.job.batch.present || one_process_on_several(a)) return false;
  std::vector<double> kernels;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    if (std::any_of(a.job.uses.begin(), a.job.uses.end(), [&](const ContextUse& use) {
          return use.ours && use.process && use.device == a.devices[device].source;
        }))
      kernels.push_back(static_cast<double>(a.ledger.total(Account::kUseful, device)));
  if (kernels.size() < 2) return false;
  const auto [least, most] = std::minmax_element(kernels.begin(), kernels.end());
  return *least < a.limits[Threshold::kUneven] * *most;
}

Finding unknown(const Analysis& a, Claims claims, bool in_pauses) {
  Finding finding;
  finding.claims = std::move(claims);
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  finding.tiers = "NP";
  finding.confidence = Confidence::kLow;
  finding.title = "The GPU was idle, and what the job did meanwhile does not say why";
  finding.evidence = {owner_sentence(s), helper_sentence(s)};
  append(finding.evidence, storage_sentences(s));
  if (s.owners == 0 && !watched(a, finding.claims)) {
    finding.evidence = {"no process on the GPU lived long enough to be looked at twice"};
    finding.candidates = {Cause::kStartupLoad, Cause::kUnderPacking};
    finding.title = "The processes on the GPU were too short to be watched";
    if (a.job.batch.present && a.ledger.busy() == 0) {
      finding.evidence = {
          "no kernel ran, and no task lived for so many looks at the driver's lists that it must have been seen there"};
      finding.candidates = {Cause::kJobNeverUsesGpu, Cause::kStartupLoad};
      finding.title = "No task was seen on the GPU: too short, or they do not use it";
    }
  } else {
    if (s.owners == 0) {
      finding.evidence = {"no reading of the process on the GPU is of this time"};
      finding.candidates = {Cause::kHostGraphBuilding, Cause::kInputInMainProcess};
      finding.title = "The GPU was idle while the job was not looked at";
    }
    if (spins(a, finding.claims))
      finding.evidence.push_back(
          "its main thread used the CPU for as long as kernels ran, as one does that looks again and again whether "
          "they are done");
    const auto seen = seen_in(s.owner_looks, a.limits[Threshold::kChannelShare]);
    if (!seen.empty()) finding.evidence.push_back(looks_sentence(seen));
    if (ranks_unlike(a)) {
      add(finding.candidates, {Cause::kStraggler});
      finding.evidence.push_back("its processes have a GPU each, and one of these computes far less than another");
    }
    if (copying(a, finding.claims) >= a.limits[Threshold::kCovers]) {
      finding.candidates = {Cause::kPageableCopies};
      finding.evidence.push_back(
          "as many bytes came over PCIe as copies from pageable memory take most of this time for");
    }
    if (notebook(a)) may_wait_for_somebody(a, s, in_pauses, finding);
    for (const Seen& place : seen) {
      const Causes more = waits_in(place.channel, s.helpers > 0, in_pauses);
      for (const Cause cause : more) add(finding.candidates, {cause});
    }
    // One look in a few says little: what else leaves no trace on the CPU stays possible.
    const bool terminal = s.owner_looks.share({WaitChannel::kTerminal}) >= a.limits[Threshold::kMajority];
    if (terminal) {
      finding.candidates.clear();
      finding.cause = Cause::kInteractiveHoldingGpu;
      finding.title = "The GPU waits for somebody at a terminal";
    } else {
      if (one_process_on_several(a)) add(finding.candidates, {Cause::kOneProcessImbalance});
      if (no_loader(a, s)) add(finding.candidates, {Cause::kInputInMainProcess});
      add(finding.candidates, {Cause::kLoggingUpload, Cause::kSlowStorage});
      if (!no_loader(a, s)) add(finding.candidates, {Cause::kBurstyInput});
      if (s.owner_threads >= a.limits[Threshold::kHelpersAtWork]) add(finding.candidates, {Cause::kGilContention});
      add(finding.candidates, {Cause::kBurstyInput, Cause::kGilContention});
      if (!notebook(a)) may_wait_for_somebody(a, s, in_pauses, finding);
    }
  }
  append(finding.evidence, recurrences(a));
  const double used = s.owner_cpu + s.owner_threads + s.owner_delay + s.helper_cpu;
  // Threads that hardly run do not keep each other from running.
  if (s.owner_cpu + s.owner_threads < a.limits[Threshold::kHelpersAtWork])
    std::erase(finding.candidates, Cause::kGilContention);
  if (s.owners > 0 && used < a.limits[Threshold::kHelpersAtWork]) {
    if (!finding.cause) finding.title = "The GPU was idle while the job hardly used the CPU";
    finding.told_apart_from = {"host code: neither the process nor its workers used the CPU"};
  }
  finding.would_overturn = "py-spy dump --pid PID while the GPU is idle: it names what the main thread waits for";
  finding.advice = "look at the stacks of the main thread while the GPU is idle (py-spy dump)";
  if (finding.cause)
    finding.advice = "let the GPU go while nobody uses it, or run the rest as a job";
  else if (s.owners > 0 && used < a.limits[Threshold::kHelpersAtWork])
    name_the_neighbour(a, finding);
  if (a.job.batch.present && s.owners == 0)
    finding.advice = "tasks that need no GPU run with --gpus none --slots N; the others: several in one process";
  name_the_child(a, s, finding);
  gains_at_most(a, finding, "if the kernels and the rest stay as they are", in_pauses);
  return finding;
}

}  // namespace

std::vector<Finding> idle_unknown(const Analysis& a) {
  if ((!a.job.has_host || a.job.owners_unknown) && !a.job.batch.present) return {};
  const Claims claims = open_time(a, {Account::kUnexplained});
  if (!a.material(length(claims))) return {};
  return of_parts(a, claims, unknown);
}

std::vector<Finding> idle_checkpoint(const Analysis& a) {
  Finding finding;
  finding.claims = claim_accounts(a, {Account::kCheckpoint});
  if (!a.material(finding.cost())) return {};
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
  finding.confidence = Confidence::kLow;
  finding.title =
      saves ? "The GPU waits while the job saves its state" : "The GPU waits while the job writes to storage";
  finding.evidence = storage_sentences(s);
  finding.evidence.push_back(owner_sentence(s));
  append(finding.evidence, recurrences(a));
  finding.would_overturn = saves ? "run once without checkpoints: if the gap stays, this is wrong"
                                 : "run once without checkpoints and output: if the gap stays, this is wrong";
  finding.advice = saves ? "write checkpoints from a thread or less often, first to local disk"
                         : "write less, less often or from a thread, first to local disk";
  gains_at_most(a, finding, "if writing overlapped wholly", true);
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
