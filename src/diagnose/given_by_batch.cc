// SPDX-License-Identifier: Apache-2.0
#include "diagnose/given_by_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/human.h"
#include "diagnose/claims.h"
#include "diagnose/words.h"

namespace headroom::diagnose {

namespace {

// Attempts that were given one of some GPUs, and how many of them had another GPU, too.
struct Given {
  std::size_t attempts = 0, with_others = 0;
};

Given given_to(const Analysis& a, const std::vector<std::size_t>& idle) {
  const auto is_idle = [&](SourceId source) {
    return std::any_of(idle.begin(), idle.end(),
                       [&](std::size_t device) { return a.devices[device].source == source; });
  };
  Given given;
  for (const TaskAttempt& attempt : a.job.batch.attempts) {
    const auto here = std::count_if(attempt.devices.begin(), attempt.devices.end(), is_idle);
    if (here == 0) continue;
    ++given.attempts;
    given.with_others += static_cast<std::size_t>(here) < attempt.devices.size() ? 1U : 0U;
  }
  return given;
}

std::vector<std::size_t> never_used(const Analysis& a, const Claims& idle) {
  std::vector<std::size_t> unused;
  for (const std::size_t device : devices_of(idle)) {
    const bool seen = std::any_of(a.job.uses.begin(), a.job.uses.end(), [&](const ContextUse& use) {
      return use.ours && use.device == a.devices[device].source;
    });
    if (!seen && a.ledger.busy(device) == 0) unused.push_back(device);
  }
  return unused;
}

}  // namespace

std::optional<Finding> given_and_never_used(const Analysis& a, Claims& idle) {
  if (!a.job.batch.present || !a.job.has_contexts || a.ledger.total(Account::kUseful) == 0) return std::nullopt;
  const Claims all = united(idle, claim_accounts(a, {Account::kNotUsed}));
  const std::vector<std::size_t> unused = never_used(a, all);
  const auto of_unused = [&](const ClaimedPiece& piece) {
    return std::find(unused.begin(), unused.end(), piece.device) != unused.end();
  };
  Finding finding;
  std::copy_if(all.begin(), all.end(), std::back_inserter(finding.claims), of_unused);
  if (!a.material(finding.cost())) return std::nullopt;
  std::erase_if(idle, of_unused);
  finding.title =
      fmt::format("{} did nothing for the tasks that had {}", gpu_names(a, unused), unused.size() == 1 ? "it" : "them");
  finding.tiers = "NP";
  finding.told_apart_from = {
      "a mask that was wrong or came too late: headroom batch set each task's before it started"};
  const Given given = given_to(a, unused);
  const std::string put = fmt::format("headroom batch put {} on {}, and the driver saw none of them there",
                                      count_of(given.attempts, "attempt"), gpu_names(a, unused));
  if (given.with_others == given.attempts) {
    finding.cause = Cause::kMoreGpusThanUseful;
    finding.evidence = {put, "each of them had another GPU, too"};
    finding.advice = "ask for fewer GPUs per task (gpus), or let each task use all that it is given";
  } else {
    finding.candidates = {Cause::kJobNeverUsesGpu, Cause::kMoreGpusThanUseful};
    finding.confidence = Confidence::kLow;
    finding.evidence = {put + ": not on a GPU, or too short for its lists"};
    finding.advice = "see where they computed (headroom batch show TASK); tasks that need no GPU run with --gpus none";
  }
  finding.would_overturn = "nvidia-smi while such a task runs: if a process of it is there, this is wrong";
  finding.bound = "none for these tasks; what they leave idle comes back for others";
  return finding;
}

}  // namespace headroom::diagnose
