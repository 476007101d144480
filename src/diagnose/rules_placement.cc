// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyze/uses.h"
#include "base/human.h"
#include "diagnose/host_waits.h"
#include "diagnose/named_waits.h"
#include "diagnose/rules.h"
#include "diagnose/unseen.h"
#include "diagnose/users.h"
#include "diagnose/words.h"
#include "model/observations.h"

namespace headroom::diagnose {

namespace {

// The environment of the job's first process, as it was started.
std::optional<Process> job_root(const Analysis& a) {
  std::optional<Process> root;
  for (const auto& [source, process] : a.processes)
    if (process.in_job && (!root || process.start < root->start)) root = process;
  return root;
}

std::string mask_of(const Process& process) {
  return process.cuda_visible_devices ? fmt::format("'{}'", *process.cuda_visible_devices) : "not set";
}

// What counts is the mask of the processes that held a GPU: a shell that started them may have had another.
std::string mask_sentence(const Analysis& a) {
  std::set<SourceId> holders;
  std::set<std::string> masks;
  for (const ContextUse& use : a.job.uses)
    if (use.ours && use.process) holders.insert(*use.process);
  for (const RecordedProcess& process : a.processes)
    if (holders.contains(process.source)) masks.insert(mask_of(process.facts));
  if (masks.empty() && a.job.batch.present) return "each task had its own CUDA_VISIBLE_DEVICES, from headroom batch";
  if (masks.empty()) {
    const auto root = job_root(a);
    return fmt::format("CUDA_VISIBLE_DEVICES was {} when the job started", root ? mask_of(*root) : "not set");
  }
  return fmt::format("CUDA_VISIBLE_DEVICES was {} for the {} that the driver listed", fmt::join(masks, " and "),
                     holders.size() == 1 ? "process" : "processes");
}

constexpr Wording kChecks{
    "check torch.cuda.is_available(), the CUDA build (torch.version.cuda is None for a CPU-only one), "
    "CUDA_VISIBLE_DEVICES, and that the model and its data are moved to the GPU",
    "check what cudaGetDeviceCount() says, that it was built with CUDA, CUDA_VISIBLE_DEVICES, and that the model and "
    "its data are moved to the GPU"};

Finding never_finding(const Analysis& a, std::string title) {
  Finding finding;
  finding.cause = Cause::kJobNeverUsesGpu;
  finding.claims = claim(a, [](std::size_t, const Slice& slice) {
    return !is_busy(slice.account) && slice.account != Account::kUnobserved;
  });
  finding.confidence = Confidence::kHigh;
  finding.tiers = "NP";
  finding.title = std::move(title);
  finding.advice = words_for(a.meta, kChecks);
  finding.bound = "unknown: nothing of this run shows how fast the GPU would be";
  return finding;
}

// What a job did before it was watched is not known: it may have computed, and be over, or hang.
void met_midway(const Analysis& a, Finding& finding) {
  finding.title =
      fmt::format("The job held a GPU and ran no kernel in the {} that were watched", human_duration(a.ledger.span()));
  finding.cause.reset();
  finding.candidates = {Cause::kHang, Cause::kUnreleasedAfterWork, Cause::kJobNeverUsesGpu};
  finding.confidence = Confidence::kLow;
  finding.evidence.push_back("its processes ran before: whether kernels came then was not recorded");
  finding.advice =
      "see what it is at (headroom stacks), and its log: whether it waits, is done, or has not begun to compute";
}

// Every process of the job that lived long enough for a context was seen without a file of a GPU open, to its end.
bool never_opened_a_gpu(const Analysis& a) {
  bool any = false;
  for (const auto& [source, process] : a.processes) {
    if (!process.in_job) continue;
    const Nanos begin = std::max(process.start, a.meta.start), end = process.end.value_or(a.meta.end);
    if (may_have_used_a_gpu(a.job, source, begin, end, a.limits)) return false;
    any = any || end - begin >= a.limits.time(Threshold::kMakesAContext);
  }
  return any;
}

// Too much of the end is unseen, beside the time in which the job was seen to hold a GPU, to say that no kernel came.
bool may_have_begun_unseen(const Analysis& a) {
  const Nanos unseen = unseen_at_end(a);
  Nanos held = 0;
  for (const ContextUse& use : a.job.uses)
    if (use.ours) held += use.last_seen - use.first_seen;
  return unseen > 0 && static_cast<double>(unseen) >= a.limits[Threshold::kMaterial] * static_cast<double>(held);
}

// Asleep from the begin to the end, it waits before its first kernel: what it waits for decides.
void may_hang(const Analysis& a, Finding& finding) {
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  if (s.owners == 0 ||
      s.owner_cpu + s.owner_threads + s.owner_delay + s.helper_cpu >= a.limits[Threshold::kHelpersAtWork])
    return;
  finding.title += ": it slept or waited";
  finding.mostly_waits = true;
  finding.cause.reset();
  finding.candidates = {Cause::kHang, Cause::kStartupLoad, Cause::kJobNeverUsesGpu};
  finding.confidence = Confidence::kMedium;
  if (!seen_in(s.owner_looks, a.limits[Threshold::kChannelShare]).empty())
    finding.evidence.push_back(looks_sentence(a, s.owner_looks, finding.claims));
  finding.evidence.push_back(owner_sentence(s));
  finding.advice = fmt::format("see what it waits for ({}): it may wait for ever; if it is not to use the GPU: {}",
                               stack_tool(a), words_for(a.meta, kChecks));
}

bool failed_by_itself(const Analysis& a) {
  return !a.job.batch.present && a.window.end >= a.meta.end && a.meta.exit_code.value_or(0) > 0 && !a.signal();
}

// A context and never a kernel: imports and device queries open one.
std::vector<Finding> holds_and_never_computes(const Analysis& a) {
  const bool whole = a.window.begin <= a.meta.start && a.window.end >= a.meta.end;
  const Nanos unobserved = a.ledger.total(Account::kUnobserved);
  if (!whole || a.job.batch.present || a.ledger.total(Account::kUseful) > 0 || 2 * unobserved > a.ledger.budget())
    return {};
  if (may_have_begun_unseen(a)) return {};
  std::vector<std::size_t> held;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    if (a.devices[device].used) held.push_back(device);
  Finding finding = never_finding(a, fmt::format("The job held {} and never ran a kernel on {}", gpu_names(a, held),
                                                 held.size() == 1 ? "it" : "them"));
  std::erase_if(finding.claims, [&](const ClaimedPiece& piece) { return !a.devices[piece.device].used; });
  finding.evidence = {fmt::format("its processes had a context there, and the driver saw no kernel of theirs in {}",
                                  human_duration(a.ledger.span())),
                      mask_sentence(a)};
  finding.told_apart_from = {"waiting for data or code: there was no kernel that could have waited"};
  finding.would_overturn = "Nsight Systems: if it sees kernels, they are too short for the driver's utilisation";
  if (was_met_midway(a))
    met_midway(a, finding);
  else
    may_hang(a, finding);
  return only(std::move(finding));
}

// Of a job without a context: whether the recording may have missed that it used a GPU.
bool may_have_used_one(const Analysis& a, bool never_opened) {
  if (!never_opened && !a.job.batch.present && a.ledger.span() < a.limits.time(Threshold::kNeverUsedAfter)) return true;
  if (std::any_of(a.job.uses.begin(), a.job.uses.end(), [](const auto& use) { return use.ours; })) return true;
  if (a.material(a.ledger.total(Account::kUnexplained))) return true;  // one that the list missed may have then
  const double own = static_cast<double>(a.ledger.total(Account::kUseful));
  if (own >= a.limits[Threshold::kPeerWorks] * static_cast<double>(a.ledger.span())) return true;  // of whom, then?
  // Neither lists with anybody in them nor a reading of the utilisation: nobody could have seen it.
  const bool listed = !a.job.uses.empty() || !a.job.graphics.empty();
  return !listed && 2 * a.ledger.total(Account::kUnobserved) > a.ledger.budget();
}

}  // namespace

std::vector<Finding> never_uses_gpu(const Analysis& a) {
  // A kernel of one that holds a GPU is in the utilisation of a period of the driver, which is a second at most.
  constexpr Nanos kTwoPeriods = 2 * kSecond;
  if (!a.job.has_job || !a.job.has_contexts || a.ledger.span() < kTwoPeriods) return {};
  // Short tasks escape the driver's lists: only kernels or a verdict of the batch itself tell.
  if (a.job.batch.present && a.ledger.total(Account::kNotUsed) < a.ledger.budget() / 2) return {};
  if (a.machine.empty()) return {};
  if (a.goes_on && !a.job.batch.present) return {};  // its first kernel may still come: start-up so far
  const bool never_opened = never_opened_a_gpu(a);
  if (!never_opened && a.material(unseen_at_end(a))) return {};  // it may have come there
  // In the window, or at another time of the recording.
  if (std::any_of(a.devices.begin(), a.devices.end(), [](const auto& device) { return device.used; }))
    return holds_and_never_computes(a);
  if (may_have_used_one(a, never_opened)) return {};
  const bool midway = was_met_midway(a);
  Finding finding = never_finding(
      a, midway ? fmt::format("The job was on no GPU in the {} that were watched", human_duration(a.ledger.span()))
                : "The job never used a GPU");
  if (midway) finding.confidence = Confidence::kMedium;  // it may have let go of one before
  finding.evidence = {
      fmt::format("no process of the job held a compute context on any GPU in {}", human_duration(a.ledger.span())),
      mask_sentence(a)};
  if (never_opened) finding.evidence.emplace_back("none of its processes ever had a file of the GPUs' driver open");
  if (a.devices.empty()) {
    finding.title = "The job was given no GPU and used none";
    finding.evidence.push_back("that mask hides every GPU of this machine");
  }
  finding.told_apart_from = {"a slow start: nothing came until the end of the recording",
                             "an idle GPU: the driver listed no process of the job at all"};
  if (failed_by_itself(a)) {  // it may have come later
    finding.title += " before it failed";
    finding.confidence = Confidence::kMedium;
    finding.told_apart_from.erase(finding.told_apart_from.begin());
    finding.advice = fmt::format("see in its output why it failed; if it was to be on the GPU by then: {}",
                                 words_for(a.meta, kChecks));
  }
  finding.would_overturn =
      "headroom doctor: in a container the driver may list the job under a pid that cannot be matched";
  return only(std::move(finding));
}

namespace {

// Processes of the job that held one GPU at the same time.
std::size_t most_at_once(const Analysis& a) {
  std::map<SourceId, std::vector<std::pair<Nanos, int>>> changes;  // by GPU: one more, or one less
  for (const ContextUse& use : a.job.uses) {
    if (!use.ours) continue;
    changes[use.device].emplace_back(use.first_seen, 1);
    changes[use.device].emplace_back(use.last_seen + 1, -1);
  }
  int most = 0;
  for (auto& [device, list] : changes) {
    std::sort(list.begin(), list.end());
    int now = 0;
    for (const auto& [at, change] : list) most = std::max(most, now += change);
  }
  return static_cast<std::size_t>(most);
}

// Whether all that ever held a GPU for the job was one process: then nobody could have been sent elsewhere.
bool one_process_alone(const Analysis& a) {
  if (!a.job.has_job || !a.job.has_contexts || a.job.batch.present) return false;
  std::set<std::int64_t> pids;
  for (const ContextUse& use : a.job.uses)
    if (use.ours) pids.insert(use.pid);
  return pids.size() == 1;
}

// True if the driver lost this GPU, or one of which a log does not say which.
bool may_be_lost(const Analysis& a, std::size_t device) {
  return std::any_of(a.lost.begin(), a.lost.end(), [&](const LostDevice& lost) {
    return lost.source == a.devices[device].source || lost.source == kNoSource;
  });
}

// "GPUs 1 to 3: 20.0 GiB of memory in use all the while: somebody holds it"
std::vector<std::string> held_memory(const Analysis& a, const std::vector<std::size_t>& idle) {
  constexpr double kMuch = 1024.0 * (1 << 20);  // more than a desktop has
  std::vector<std::size_t> held;
  double least = 0;
  for (const std::size_t device : idle) {
    const MetricStats* memory = a.stats_of(device, Metric::kMemoryUsed);
    if (!memory || memory->samples == 0 || memory->min < kMuch) continue;
    least = held.empty() ? memory->min : std::min(least, memory->min);
    held.push_back(device);
  }
  if (held.empty()) return {};
  return {fmt::format("{}: {} of memory{} in use all the while: somebody holds it", gpu_names(a, held),
                      human_bytes(static_cast<std::int64_t>(least)), held.size() > 1 ? " and more each" : "")};
}

// Kernels of the job on a device.
Nanos own_kernels(const Analysis& a, std::size_t device) {
  return a.ledger.busy(device) - a.ledger.total(Account::kForeign, device);
}

// How many of them worked about as much as the one that did most: one that hardly works is in use no more than one that
// does not.
std::size_t as_busy_as_most(const Analysis& a, const std::vector<std::size_t>& working) {
  Nanos most = 0;
  for (const std::size_t device : working) most = std::max(most, own_kernels(a, device));
  return static_cast<std::size_t>(std::count_if(
      working.begin(), working.end(), [&](std::size_t device) { return 2 * own_kernels(a, device) >= most; }));
}

// What is known of who was on the GPUs: how busy these were, and how many processes the driver listed at once.
std::vector<std::string> who_was_there(const Analysis& a, const std::vector<std::size_t>& idle,
                                       const std::vector<std::size_t>& working, std::size_t most) {
  std::vector<std::string> evidence;
  for (const std::size_t device : working)
    evidence.push_back(
        fmt::format("{} was busy for {}", a.device_name(device), human_duration(own_kernels(a, device))));
  if (readings_alone(a)) append(evidence, held_memory(a, idle));
  if (!a.job.has_contexts) return evidence;
  evidence.push_back(fmt::format("the driver listed at most {} process{}{} at once on a GPU, none on {}", most,
                                 most == 1 ? "" : "es", a.job.has_job ? " of the job" : "", gpu_names(a, idle)));
  if (!a.job.has_job) return evidence;
  evidence.push_back(mask_sentence(a));
  if (most > 1)
    evidence.push_back(fmt::format(
        "a worker that ended within {} may not have been seen: whether some were started for {} and failed at once, "
        "their output tells",
        human_duration(a.meta.interval), gpu_names(a, idle)));
  return evidence;
}

// Jobs of several users: it is free for another one, or somebody's who does not use it.
void say_whose_they_are(const Analysis& a, const std::vector<std::size_t>& idle, Finding& finding) {
  finding.bound = "none for the jobs on the others";
  if (std::any_of(idle.begin(), idle.end(), [&](std::size_t device) { return has_users(a, device); })) {
    finding.advice = "see what the process there is for: it is on the GPU, and ran no kernel";
    return;
  }
  finding.candidates.clear();
  finding.cause = Cause::kMoreGpusThanUseful;
  finding.evidence.push_back("the log names no process on " + gpu_names(a, idle));
  finding.advice = "run something else there";
}

Finding peers_finding(const Analysis& a, const std::vector<std::size_t>& idle,
                      const std::vector<std::size_t>& working) {
  Finding finding;
  finding.claims = claim(a, [&](std::size_t device, const Slice& slice) {
    return a.gpus[device].idle_peer && !a.gpus[device].of_others && !is_busy(slice.account) &&
           slice.account != Account::kUnobserved;
  });
  finding.title = fmt::format("{} did nothing while {} worked", gpu_names(a, idle), gpu_names(a, working));
  finding.confidence = Confidence::kHigh;
  finding.tiers = a.job.has_host ? "NP" : "N";
  const std::size_t most = most_at_once(a);
  // Who shares its GPU with others while one stands free is on the wrong one.
  const bool others_there = a.job.has_job && a.material(a.ledger.total(Account::kForeign));
  const auto gone = gone_workers_of(a, idle);
  finding.evidence = who_was_there(a, idle, working, most);
  append(finding.evidence, gone);
  finding.advice = "ask for fewer GPUs, run something else there, or let the job use all of them (one process each)";
  if (others_there)
    finding.advice =
        fmt::format("run the job there, where nobody computed, and not beside others: CUDA_VISIBLE_DEVICES={}",
                    a.devices[idle.front()].device.uuid);
  if (!gone.empty()) {
    finding.cause = Cause::kWrongGpuAssignment;
    finding.confidence = Confidence::kLow;
    finding.told_apart_from = {"a job that was given one GPU only: some of its workers were meant for this one"};
    finding.advice = "look at what those workers printed as they ended, or start one of them alone with that mask";
  } else if (most > 1) {
    finding.cause = Cause::kWrongGpuAssignment;
    finding.told_apart_from = {"one process that can use one GPU only: there were several processes"};
    finding.advice = "give each process its own GPU before it starts (CUDA_VISIBLE_DEVICES by UUID)";
    if (a.job.has_job) {  // those that were meant for it may have failed before anybody looked
      finding.confidence = Confidence::kMedium;
      finding.advice += fmt::format(
          "; if each had one, see in their output whether those for {} failed as they started", gpu_names(a, idle));
    }
  } else if (one_process_alone(a) && !others_there) {
    finding.cause = Cause::kMoreGpusThanUseful;
    finding.told_apart_from = {"a wrong assignment: no other process of the job was on a GPU"};
  } else {
    finding.candidates = {Cause::kMoreGpusThanUseful, Cause::kWrongGpuAssignment};
    if (others_there) std::reverse(finding.candidates.begin(), finding.candidates.end());
  }
  if (gone.empty() && most <= 1 &&
      std::none_of(idle.begin(), idle.end(), [&](std::size_t device) { return may_be_lost(a, device); }))
    finding.told_apart_from.push_back("a fault of the GPU: it answered every query");
  finding.would_overturn = "nvidia-smi while it runs: if a process of the job is on the idle GPU, this is wrong";
  finding.bound = fmt::format(
      "{}{} the work per second at most, if it can be split evenly over all {}, and nothing for a "
      "single task that uses one GPU",
      most > 1 ? "" : "with fewer GPUs the job takes as long, and the others come back; with all of them in use ",
      human_factor(static_cast<double>(a.devices.size()) / static_cast<double>(as_busy_as_most(a, working))),
      a.devices.size());
  if (!jobs_by_users(a).empty()) say_whose_they_are(a, idle, finding);
  return finding;
}

}  // namespace

std::vector<Finding> placement(const Analysis& a) {
  std::vector<Finding> findings = wrong_pins(a);
  std::vector<std::size_t> idle, working;
  const double works = a.limits[Threshold::kPeerWorks] * static_cast<double>(a.ledger.span());
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    if (a.gpus[device].idle_peer && !a.gpus[device].of_others) idle.push_back(device);
    if (static_cast<double>(own_kernels(a, device)) > works) working.push_back(device);
  }
  const bool explained =
      std::any_of(findings.begin(), findings.end(), [](const Finding& finding) { return finding.cost() > 0; });
  if (!idle.empty() && !working.empty() && !explained) findings.push_back(peers_finding(a, idle, working));
  return findings;
}

namespace {

// What others hold of a device's memory matters where the job had use for it.
bool memory_was_short(const Analysis& a, std::size_t device) {
  const MetricStats* used = a.stats_of(device, Metric::kMemoryUsed);
  const auto total = a.devices[device].device.memory_total_bytes;
  if (!used || used->samples == 0 || !total || a.out_of_memory || a.meta.exit_code.value_or(0) != 0) return true;
  return used->max >= a.limits[Threshold::kOutOfMemory] * static_cast<double>(*total);
}

}  // namespace

std::vector<Finding> foreign_tenant(const Analysis& a) {
  Finding finding;
  // Where the job never was, nothing of its was lost.
  finding.claims = claim_accounts(a, {Account::kForeign});
  std::erase_if(finding.claims, [&](const ClaimedPiece& piece) { return a.gpus[piece.device].of_others; });
  Nanos own = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    if (!a.gpus[device].of_others) own += a.ledger.total(Account::kUseful, device);
  bool matters = a.share(finding.cost()) >= a.limits[Threshold::kTenantBusy];
  for (const Tenant& tenant : a.tenants) {
    if (a.gpus[tenant.device].of_others) continue;
    const auto total = a.devices[tenant.device].device.memory_total_bytes;
    const double share = total ? static_cast<double>(tenant.peak_bytes) / static_cast<double>(*total) : 0;
    matters |= share >= a.limits[Threshold::kTenantMemory] && memory_was_short(a, tenant.device);
    const Process& process = tenant.process;
    finding.evidence.push_back(fmt::format(
        "{}: process {}{}{}, {} of device memory, seen for {}", a.device_name(tenant.device), tenant.use.pid,
        process.comm.empty() ? "" : " (" + process.comm + ")", process.user.empty() ? "" : " of user " + process.user,
        human_bytes(tenant.peak_bytes), human_duration(tenant.use.last_seen - tenant.use.first_seen)));
  }
  if (finding.evidence.empty() || !matters) return {};
  const Nanos foreign = finding.cost();
  if (foreign > 0)
    finding.evidence.push_back(fmt::format(
        "kernels of other processes ran for {}, the job's for {}; for how much of that the job waited is not recorded",
        human_duration(foreign), human_duration(own)));
  finding.cause = Cause::kForeignTenant;
  finding.confidence = Confidence::kHigh;
  finding.tiers = "NP";
  finding.title =
      foreign > 0 ? "Processes outside the job used its GPUs" : "Processes outside the job held memory of its GPUs";
  finding.told_apart_from = {"the desktop: graphics contexts are not counted"};
  finding.advice = "move the job or the other process to another GPU";
  if (finding.cost() > 0)
    gains_by_removal(
        a, finding,
        "if the others' kernels were gone, the job's stay as they are, and it did nothing but wait meanwhile");
  else
    finding.bound = "device memory comes back; no kernel of theirs was seen";
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
