// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/human.h"
#include "diagnose/rules.h"

namespace headroom::diagnose {

namespace {

const Source& source_of(const Case& c, SourceId id) { return c.recording.sources[static_cast<std::size_t>(id)]; }

// The environment of the job's first process, as it was started.
std::optional<Process> job_root(const Case& c) {
  std::optional<Process> root;
  for (const SourceId id : c.recording.all(SourceKind::kProcess)) {
    const Process process = process_of(source_of(c, id));
    if (process.in_job && (!root || process.start < root->start)) root = process;
  }
  return root;
}

std::string mask_words(const std::optional<Process>& process) {
  if (!process || !process->cuda_visible_devices) return "CUDA_VISIBLE_DEVICES was not set";
  return fmt::format("CUDA_VISIBLE_DEVICES was '{}'", *process->cuda_visible_devices);
}

}  // namespace

std::vector<Finding> never_uses_gpu(const Case& c) {
  constexpr Nanos kLongEnough = 5 * kSecond;
  if (!c.job.has_job || !c.job.has_contexts || c.ledger().span() < kLongEnough) return {};
  // Short tasks escape the driver's lists: only kernels or a verdict of the batch itself tell.
  if (c.job.batch.present && c.ledger().total(Account::kNotUsed) < c.ledger().budget() / 2) return {};
  if (std::any_of(c.job.uses.begin(), c.job.uses.end(), [](const auto& use) { return use.ours; })) return {};
  if (c.recording.all(SourceKind::kGpu).empty()) return {};
  Finding finding;
  finding.cause = Cause::kJobNeverUsesGpu;
  finding.cost = c.ledger().budget();
  finding.confidence = Confidence::kHigh;
  finding.tier = "NP";
  finding.title = "The job never used a GPU";
  finding.evidence = {
      fmt::format("no process of the job held a compute context on any GPU in {}", human_duration(c.ledger().span())),
      mask_words(job_root(c)) + " when it started"};
  if (c.times.empty()) {
    finding.title = "The job was given no GPU and used none";
    finding.evidence.push_back("that mask hides every GPU of this machine");
  }
  finding.told_apart_from = {"a slow start: nothing came until the end of the recording",
                             "an idle GPU: the driver listed no process of the job at all"};
  finding.would_overturn = "the driver listing the job under a pid that cannot be matched (containers): doctor says so";
  finding.advice = "check torch.cuda.is_available() or the library's device setting, the CPU-only build, and the mask";
  finding.bound = "unknown: nothing of this run shows how fast the GPU would be";
  return {finding};
}

namespace {

// Tier N: a device without any activity while another works.
bool quiet(const Case& c, std::size_t device) {
  const MetricStats* util = c.stats(device, Metric::kGpuUtil);
  return util && util->samples > 0 && util->max <= 0.02;
}

Finding peers_finding(const Case& c, const std::vector<std::size_t>& idle, const std::vector<std::size_t>& working) {
  Finding finding;
  std::vector<std::string> names;
  for (const std::size_t device : idle) {
    finding.cost += c.ledger().span();
    names.push_back(c.device_name(device));
  }
  finding.title = fmt::format("{} did nothing while {} worked", fmt::join(names, ", "), c.device_name(working.front()));
  finding.confidence = Confidence::kHigh;
  finding.tier = c.job.has_host ? "NP" : "N";
  for (const std::size_t device : working)
    finding.evidence.push_back(
        fmt::format("{} was busy for {}", c.device_name(device), human_duration(c.ledger().busy(device))));
  std::map<SourceId, std::set<std::int64_t>> pids;
  for (const ContextUse& use : c.job.uses)
    if (use.ours) pids[use.device].insert(use.pid);
  std::size_t most = 0;
  for (const auto& [device, set] : pids) most = std::max(most, set.size());
  if (c.job.has_contexts) {
    finding.evidence.push_back(fmt::format("the driver listed {} process{} of the job on the busiest GPU, none on {}",
                                           most, most == 1 ? "" : "es", fmt::join(names, ", ")));
    finding.evidence.push_back(mask_words(job_root(c)) + " when the job started");
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
      human_factor(static_cast<double>(c.times.size()) / static_cast<double>(working.size())), c.times.size());
  return finding;
}

}  // namespace

std::vector<Finding> idle_peers(const Case& c) {
  if (c.job.batch.present) return {};  // which GPU stood free while tasks waited, and which had no task, is known there
  std::vector<std::size_t> idle, working;
  for (std::size_t device = 0; device < c.times.size(); ++device) {
    const bool unused = c.job.has_contexts ? !c.times[device].used : quiet(c, device);
    const bool works = c.ledger().busy(device) * 50 > c.ledger().span();
    if (unused && !works)
      idle.push_back(device);
    else if (works)
      working.push_back(device);
  }
  if (idle.empty() || working.empty()) return {};
  for (const Finding& finding : pinning(c))
    if (finding.cost > 0) return {};  // the same idle GPUs, and their reason
  return {peers_finding(c, idle, working)};
}

std::vector<Finding> foreign_tenant(const Case& c) {
  constexpr double kMaterialMemory = 0.05;
  if (!c.job.has_job) return {};
  std::vector<std::string> evidence;
  bool material = c.share(c.ledger().total(Account::kForeign)) >= 0.01;
  for (const ContextUse& use : c.job.uses) {
    if (use.ours) continue;
    const auto device =
        std::find_if(c.times.begin(), c.times.end(), [&](const auto& t) { return t.source == use.device; });
    if (device == c.times.end()) continue;
    double memory = 0;
    const Track& track = c.recording.tracks[static_cast<std::size_t>(use.source)];
    if (const Column* column = track.find(Metric::kProcessGpuMemory))
      for (std::size_t row = 0; row < column->values.size(); ++row)
        if (column->has(row)) memory = std::max(memory, static_cast<double>(column->values[row]));
    const auto total = device->device.memory_total_bytes;
    material |= total && memory >= kMaterialMemory * static_cast<double>(*total);
    const Process process = use.process ? process_of(source_of(c, *use.process)) : Process{.pid = use.pid};
    evidence.push_back(fmt::format(
        "GPU {}: process {}{}{}, {} of device memory, seen for {}", device->device.index, use.pid,
        process.comm.empty() ? "" : " (" + process.comm + ")", process.user.empty() ? "" : " of user " + process.user,
        human_bytes(static_cast<std::int64_t>(memory)), human_duration(use.last_seen - use.first_seen)));
  }
  if (evidence.empty() || !material) return {};
  Finding finding;
  finding.cause = Cause::kForeignTenant;
  finding.cost = c.ledger().total(Account::kForeign);
  finding.confidence = Confidence::kHigh;
  finding.tier = "NP";
  finding.title = "Processes outside the job used its GPUs";
  finding.evidence = std::move(evidence);
  finding.told_apart_from = {"the desktop: graphics contexts are not counted"};
  finding.would_overturn = "the process turning out to be started by the job, outside its process tree";
  finding.advice = "move the job or the other process to another GPU";
  finding.bound =
      fmt::format("{} at most of the busy time of these GPUs comes back", human_percent(c.share(finding.cost)));
  return {finding};
}

}  // namespace headroom::diagnose
