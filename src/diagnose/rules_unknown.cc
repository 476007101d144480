// SPDX-License-Identifier: Apache-2.0
// What the driver did not say: it is named once, and nothing is read into it.
#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "diagnose/rules.h"
#include "diagnose/unseen.h"
#include "diagnose/words.h"

namespace headroom::diagnose {

std::vector<Finding> owners_unknown(const Analysis& a) {
  if (!a.job.owners_unknown) return {};
  Finding finding;
  finding.cause = Cause::kOwnersUnknown;
  finding.confidence = Confidence::kHigh;
  finding.tiers = "N";
  finding.title = "Whose kernels ran is unknown: the driver names no process that can be found here";
  finding.evidence = {fmt::format("kernels ran for {}; they are booked for the job, with low confidence",
                                  human_duration(a.ledger.busy()))};
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const MetricStats* memory = a.stats_of(device, Metric::kMemoryUsed);
    if (!memory || memory->samples == 0 || a.ledger.busy(device) == 0) continue;
    const auto low = static_cast<std::int64_t>(memory->min), high = static_cast<std::int64_t>(memory->max);
    if (memory->min < a.limits[Threshold::kMemoryFreed] * memory->max)
      finding.evidence.push_back(
          fmt::format("{}: its memory in use went from {} to {} while the job ran: that speaks "
                      "for the job",
                      a.device_name(device), human_bytes(low), human_bytes(high)));
  }
  finding.would_overturn = "a process list that names the job";
  if (too_short_to_list(a)) {
    finding.title = "Whose kernels ran is unknown: the driver named no process of this short job";
    finding.advice = fmt::format("a longer run{}; if that stays so: headroom doctor",
                                 looks_often(a) ? "" : ", or one looked at more often (headroom run -i 100ms)");
  } else {
    finding.advice =
        "in a container: start it with --pid=host, or run headroom inside it; without root: look whether /proc hides "
        "other users' processes (hidepid); on WSL2 the driver has no process list. headroom doctor says which it is";
  }
  finding.bound = "none: it makes the answer surer";
  return only(std::move(finding));
}

std::vector<Finding> utilisation_not_reported(const Analysis& a) {
  Finding finding;
  std::vector<std::size_t> silent;
  bool mig = false;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    if (!a.unreported[device]) continue;
    silent.push_back(device);
    mig |= a.devices[device].device.mig_mode == "enabled";
    const MetricStats* util = a.stats_of(device, Metric::kGpuUtil);
    const std::string why = util && util->absent ? std::string(absent_text(*util->absent)) : "no such reading";
    finding.evidence.push_back(fmt::format("{}: {}; its other readings are there", a.device_name(device), why));
  }
  if (silent.empty()) return {};
  finding.cause = Cause::kUtilisationNotReported;
  finding.confidence = Confidence::kHigh;
  finding.tiers = "N";
  finding.title = fmt::format("The utilisation of {} was not reported", gpu_names(a, silent));
  finding.claims = claim(a, [&](std::size_t device, const Slice& slice) {
    return a.unreported[device] && slice.account == Account::kUnobserved;
  });
  finding.evidence.push_back(mig ? "MIG is enabled: the driver reports no utilisation of the whole GPU then"
                                 : "the driver does so of a GPU that is split (MIG), and of some virtual GPUs");
  finding.would_overturn = "the same query with a number in it";
  finding.advice = "nvidia-smi -L shows MIG instances; their use needs DCGM, or MIG switched off";
  finding.bound = "unknown: nothing shows when kernels ran";
  return only(std::move(finding));
}

std::vector<Finding> device_lost(const Analysis& a) {
  std::vector<Finding> findings;
  for (const LostDevice& lost : a.lost) {
    Finding finding;
    finding.cause = Cause::kDeviceLost;
    finding.confidence = Confidence::kHigh;
    finding.tiers = "N";
    std::string name = "a GPU";
    for (std::size_t device = 0; device < a.devices.size(); ++device)
      if (a.devices[device].source == lost.source) name = a.device_name(device);
    finding.claims = unread_by_loss(a, lost);
    finding.title = fmt::format("The driver lost {} at {}", name, a.when(lost.at));
    finding.evidence = {fmt::format("the driver's word: {}", lost.word)};
    if (finding.cost() > 0)
      finding.evidence.push_back(
          fmt::format("nothing is known of the {} since its last reading before", human_duration(finding.cost())));
    finding.would_overturn = "the GPU answering again without a reset";
    finding.advice =
        "look for Xid messages in the kernel's log (dmesg | grep -i xid), at power and cooling; it needs a reset or a "
        "restart of the machine";
    finding.bound = "not a matter of speed";
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace headroom::diagnose
