// SPDX-License-Identifier: Apache-2.0
// Idle time of which neither counters nor stacks say what the job did.
#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "diagnose/given_by_batch.h"
#include "diagnose/host_memory.h"
#include "diagnose/host_waits.h"
#include "diagnose/idle_parts.h"
#include "diagnose/named_waits.h"
#include "diagnose/rules.h"
#include "diagnose/words.h"
#include "diagnose/work_during.h"
#include "model/observations.h"

namespace headroom::diagnose {

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

// Whether nothing of the job used the CPU to speak of, neither then nor in the readings before and after: those of the
// driver and those of the processes are not of the very same time.
bool left_the_cpu_alone(const Analysis& a, const Claims& claims) {
  Claims near = claims;
  for (ClaimedPiece& piece : near) {
    piece.begin = std::max(a.window.begin, piece.begin - a.meta.interval);
    piece.end = std::min(a.window.end, piece.end + a.meta.interval);
  }
  const HostSummary s = host_during(a.job, a.devices, united(near, {}));
  return s.owners > 0 &&
         s.owner_cpu + s.owner_threads + s.owner_delay + s.helper_cpu < a.limits[Threshold::kHelpersAtWork];
}

// No process on these GPUs lived for two looks at it.
void say_that_none_was_watched(const Analysis& a, Finding& finding) {
  finding.evidence = {"no process on the GPU lived long enough to be looked at twice"};
  finding.candidates = {Cause::kStartupLoad, Cause::kUnderPacking};
  finding.title = "The processes on the GPU were too short to be watched";
  const bool listed = std::any_of(a.job.uses.begin(), a.job.uses.end(), [](const auto& use) { return use.ours; });
  if (a.job.has_job && !a.job.batch.present && !listed && a.job.has_contexts) {
    finding.evidence = {"it ended before the driver's list was read often enough to hold each process that had a GPU"};
    finding.candidates = {Cause::kJobNeverUsesGpu, Cause::kStartupLoad};
    finding.title = "Whether the job used the GPU before it ended is not known";
  }
  if (a.job.batch.present && a.ledger.busy() == 0) {
    finding.evidence = {
        "no kernel ran, and no task lived for so many looks at the driver's lists that it must have been seen there"};
    finding.candidates = {Cause::kJobNeverUsesGpu, Cause::kStartupLoad};
    finding.title = "No task was seen on the GPU: too short, or they do not use it";
  }
}

// What leaves no trace on the CPU, beside what was seen: one look in a few says little.
void add_what_is_not_seen(const Analysis& a, const HostSummary& s, Causes& candidates) {
  if (one_process_on_several(a)) add(candidates, {Cause::kOneProcessImbalance});
  if (no_loader(a, s)) add(candidates, {Cause::kInputInMainProcess});
  add(candidates, {Cause::kLoggingUpload, Cause::kSlowStorage});
  if (!no_loader(a, s)) add(candidates, {Cause::kBurstyInput});
  if (s.owner_threads >= a.limits[Threshold::kHelpersAtWork]) add(candidates, {Cause::kGilContention});
  add(candidates, {Cause::kBurstyInput, Cause::kGilContention});
}

// What the process on the GPU was seen at, and what that may be.
void say_what_was_seen(const Analysis& a, const HostSummary& s, bool in_pauses, Finding& finding) {
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
  if (!seen.empty()) finding.evidence.push_back(looks_sentence(a, s.owner_looks, finding.claims));
  if (ranks_unlike(a)) {
    add(finding.candidates, {Cause::kStraggler});
    finding.evidence.push_back("its processes have a GPU each, and one of these computes far less than another");
  }
  if (copying(a, finding.claims) >= a.limits[Threshold::kCovers]) {
    finding.candidates = {Cause::kPageableCopies};
    finding.evidence.push_back(
        fmt::format("as many bytes came over PCIe as copies from pageable memory, at {:.0f} GB/s, take most of this "
                    "time for",
                    a.limits[Threshold::kPageable] / 1e9));
  }
  if (takes_commands(a)) may_wait_for_somebody(a, s, in_pauses, finding);
  for (const Seen& place : seen) add(finding.candidates, waits_in(place.channel, s.helpers > 0, in_pauses));
  if (s.owner_looks.share({WaitChannel::kTerminal}) >= a.limits[Threshold::kMajority]) {
    finding.candidates.clear();
    finding.cause = Cause::kInteractiveHoldingGpu;
    finding.title = "The GPU waits for somebody at a terminal";
    finding.confidence = Confidence::kMedium;
    finding.would_overturn = info(Cause::kInteractiveHoldingGpu).overturn;
    return;
  }
  // What is typed has stacks while it runs.
  const bool prompt =
      takes_commands(a) && !notebook(a) && has_stacks(a) &&
      s.waiting_in({WaitChannel::kPipe, WaitChannel::kPoll, WaitChannel::kSocket}) >= a.limits[Threshold::kMajority];
  if (in_pauses && prompt) {
    finding.candidates.clear();
    finding.cause = Cause::kInteractiveHoldingGpu;
    finding.title = "The GPU waits for the next command at the prompt of an interactive interpreter";
    return;
  }
  add_what_is_not_seen(a, s, finding.candidates);
  if (!takes_commands(a)) may_wait_for_somebody(a, s, in_pauses, finding);
}

// `alone`: nothing of the job used the CPU.
void advise(const Analysis& a, const HostSummary& s, bool alone, Finding& finding) {
  finding.would_overturn = stack_dump(a) + " while the GPU is idle: it names what the main thread waits for";
  finding.advice = fmt::format("look at the stacks of the main thread while the GPU is idle ({})", stack_tool(a));
  if (has_stacks(a)) {
    finding.would_overturn = fmt::format("{} while the GPU is idle: it names the library that waits", kNativeStacks);
    finding.advice = "look at what its threads were at while the GPU was idle (headroom stacks)";
  }
  if (finding.cause)
    finding.advice = "let the GPU go while nobody uses it, or run the rest as a job";
  else if (alone)
    name_the_neighbour(a, finding);
  if (a.job.batch.present && s.owners == 0)
    finding.advice = "tasks that need no GPU run with --gpus none --slots N; the others: several in one process";
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
  if (s.owners == 0 && !watched(a, finding.claims))
    say_that_none_was_watched(a, finding);
  else
    say_what_was_seen(a, s, in_pauses, finding);
  append(finding.evidence, recurrences(a, finding.claims));
  // Threads that hardly run do not keep each other from running.
  if (s.owner_cpu + s.owner_threads < a.limits[Threshold::kHelpersAtWork])
    std::erase(finding.candidates, Cause::kGilContention);
  const bool ran = s.owner_looks.share({WaitChannel::kRunning}) >= a.limits[Threshold::kChannelShare];
  const bool alone = !ran && left_the_cpu_alone(a, finding.claims);
  if (!alone && s.owners > 0 && !finding.cause) {
    add(finding.candidates, {Cause::kHostGraphBuilding});
    if (in_pauses) add(finding.candidates, {Cause::kValidation, Cause::kEpochEndHostWork});
  } else if (alone) {
    if (!finding.cause) finding.title = "The GPU was idle while the job hardly used the CPU";
    finding.told_apart_from = {"host code: neither the process nor its workers used the CPU"};
  }
  advise(a, s, alone, finding);
  follow_the_wait(a, s, in_pauses, finding);
  exclude_copies(a, finding);
  exclude_storage(a, s, finding);
  may_want_memory(a, s, finding);
  may_be_the_link(a, finding);
  name_the_child(a, s, finding);
  // Somebody who is away may be so after the last kernel, too.
  gains_at_most(a, finding, "if nothing of it kept the GPU waiting", in_pauses || finding.cause.has_value());
  gains_of_a_straggler(a, finding);
  return finding;
}

}  // namespace

std::vector<Finding> idle_unknown(const Analysis& a, const IdleParts& parts) {
  if ((!a.job.has_host || a.job.owners_unknown) && !a.job.batch.present) return {};
  Claims claims = open_time(a, parts, {Account::kUnexplained});
  const auto unused = given_and_never_used(a, claims);
  std::vector<Finding> findings;
  if (unused) findings.push_back(*unused);
  if (a.material(length(claims)))
    for (Finding& finding : of_parts(a, claims, unknown)) findings.push_back(std::move(finding));
  return findings;
}

}  // namespace headroom::diagnose
