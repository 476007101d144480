// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/human.h"
#include "diagnose/rules.h"

namespace headroom::diagnose {

namespace {

// The environment of the job's first process, as it was started.
std::optional<Process> job_root(const Analysis& a) {
  std::optional<Process> root;
  for (const auto& [source, process] : a.processes)
    if (process.in_job && (!root || process.start < root->start)) root = process;
  return root;
}

std::string mask_words(const std::optional<Process>& process) {
  if (!process || !process->cuda_visible_devices) return "CUDA_VISIBLE_DEVICES was not set";
  return fmt::format("CUDA_VISIBLE_DEVICES was '{}'", *process->cuda_visible_devices);
}

}  // namespace

std::vector<Finding> never_uses_gpu(const Analysis& a) {
  const Nanos long_enough = a.limits.time(Threshold::kNeverUsedAfter);
  if (!a.job.has_job || !a.job.has_contexts || a.ledger.span() < long_enough) return {};
  // Short tasks escape the driver's lists: only kernels or a verdict of the batch itself tell.
  if (a.job.batch.present && a.ledger.total(Account::kNotUsed) < a.ledger.budget() / 2) return {};
  if (std::any_of(a.job.uses.begin(), a.job.uses.end(), [](const auto& use) { return use.ours; })) return {};
  if (a.machine.empty()) return {};
  // At another time of the recording it did.
  if (std::any_of(a.devices.begin(), a.devices.end(), [](const auto& device) { return device.used; })) return {};
  Finding finding;
  finding.cause = Cause::kJobNeverUsesGpu;
  finding.claims = claim(a, [](std::size_t, const Slice& slice) {
    return !is_busy(slice.account) && slice.account != Account::kUnobserved;
  });
  finding.confidence = Confidence::kHigh;
  finding.tiers = "NP";
  finding.title = "The job never used a GPU";
  finding.evidence = {
      fmt::format("no process of the job held a compute context on any GPU in {}", human_duration(a.ledger.span())),
      mask_words(job_root(a)) + " when it started"};
  if (a.devices.empty()) {
    finding.title = "The job was given no GPU and used none";
    finding.evidence.push_back("that mask hides every GPU of this machine");
  }
  finding.told_apart_from = {"a slow start: nothing came until the end of the recording",
                             "an idle GPU: the driver listed no process of the job at all"};
  finding.would_overturn = "the driver listing the job under a pid that cannot be matched (containers): doctor says so";
  finding.advice = "check torch.cuda.is_available() or the library's device setting, the CPU-only build, and the mask";
  finding.bound = "unknown: nothing of this run shows how fast the GPU would be";
  return only(std::move(finding));
}

namespace {

Finding peers_finding(const Analysis& a, const std::vector<std::size_t>& idle,
                      const std::vector<std::size_t>& working) {
  Finding finding;
  std::vector<std::string> names;
  for (const std::size_t device : idle) names.push_back(a.device_name(device));
  finding.claims = claim(a, [&](std::size_t device, const Slice& slice) {
    return a.idle_peer[device] && !is_busy(slice.account) && slice.account != Account::kUnobserved;
  });
  finding.title = fmt::format("{} did nothing while {} worked", fmt::join(names, ", "), a.device_name(working.front()));
  finding.confidence = Confidence::kHigh;
  finding.tiers = a.job.has_host ? "NP" : "N";
  for (const std::size_t device : working)
    finding.evidence.push_back(
        fmt::format("{} was busy for {}", a.device_name(device), human_duration(a.ledger.busy(device))));
  std::map<SourceId, std::set<std::int64_t>> pids;
  for (const ContextUse& use : a.job.uses)
    if (use.ours) pids[use.device].insert(use.pid);
  std::size_t most = 0;
  for (const auto& [device, set] : pids) most = std::max(most, set.size());
  if (a.job.has_contexts) {
    finding.evidence.push_back(fmt::format("the driver listed {} process{} of the job on the busiest GPU, none on {}",
                                           most, most == 1 ? "" : "es", fmt::join(names, ", ")));
    finding.evidence.push_back(mask_words(job_root(a)) + " when the job started");
  }
  if (most > 1) {
    finding.cause = Cause::kWrongGpuAssignment;
    finding.told_apart_from = {"one process that can use one GPU only: there were several processes"};
  } else {
    finding.candidates = {Cause::kMoreGpusThanUseful, Cause::kWrongGpuAssignment};
    finding.told_apart_from = {"a fault of the GPU: it answered every query"};
  }
  finding.would_overturn = "a process of the job seen on the idle GPU in a finer recording";
  finding.advice =
      "give each process its own GPU before it starts (CUDA_VISIBLE_DEVICES by UUID), or ask for fewer GPUs";
  finding.bound = fmt::format(
      "{} the work per second at most, if it can be split evenly over all {}, and nothing for a "
      "single task that uses one GPU",
      human_factor(static_cast<double>(a.devices.size()) / static_cast<double>(working.size())), a.devices.size());
  return finding;
}

}  // namespace

std::vector<Finding> placement(const Analysis& a) {
  std::vector<Finding> findings = wrong_pins(a);
  std::vector<std::size_t> idle, working;
  const double works = a.limits[Threshold::kPeerWorks] * static_cast<double>(a.ledger.span());
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    if (a.idle_peer[device]) idle.push_back(device);
    const Nanos own = a.ledger.total(Account::kUseful, device) + a.ledger.total(Account::kDiscarded, device);
    if (static_cast<double>(own) > works) working.push_back(device);
  }
  const bool explained =
      std::any_of(findings.begin(), findings.end(), [](const Finding& finding) { return finding.cost() > 0; });
  if (!idle.empty() && !working.empty() && !explained) findings.push_back(peers_finding(a, idle, working));
  return findings;
}

std::vector<Finding> foreign_tenant(const Analysis& a) {
  Finding finding;
  finding.claims = claim_accounts(a, {Account::kForeign});
  bool matters = a.share(finding.cost()) >= a.limits[Threshold::kTenantBusy];
  for (const Tenant& tenant : a.tenants) {
    const auto total = a.devices[tenant.device].device.memory_total_bytes;
    const double share = total ? static_cast<double>(tenant.peak_bytes) / static_cast<double>(*total) : 0;
    matters |= share >= a.limits[Threshold::kTenantMemory];
    const Process& process = tenant.process;
    finding.evidence.push_back(fmt::format(
        "{}: process {}{}{}, {} of device memory, seen for {}", a.device_name(tenant.device), tenant.use.pid,
        process.comm.empty() ? "" : " (" + process.comm + ")", process.user.empty() ? "" : " of user " + process.user,
        human_bytes(tenant.peak_bytes), human_duration(tenant.use.last_seen - tenant.use.first_seen)));
  }
  if (finding.evidence.empty() || !matters) return {};
  const Nanos foreign = a.ledger.total(Account::kForeign), own = a.ledger.total(Account::kUseful);
  if (foreign > own)
    finding.evidence.push_back(fmt::format("kernels of other processes ran for {}, the job's for {}",
                                           human_duration(foreign), human_duration(own)));
  finding.cause = Cause::kForeignTenant;
  finding.confidence = Confidence::kHigh;
  finding.tiers = "NP";
  finding.title = "Processes outside the job used its GPUs";
  finding.told_apart_from = {"the desktop: graphics contexts are not counted"};
  finding.would_overturn = "the process turning out to be started by the job, outside its process tree";
  finding.advice = "move the job or the other process to another GPU";
  finding.bound = fmt::format("{} at most of the GPUs' time comes back", human_percent(a.share(finding.cost())));
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
