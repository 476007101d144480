// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "diagnose/host_waits.h"
#include "diagnose/idle_parts.h"
#include "diagnose/rules.h"
#include "diagnose/words.h"

namespace headroom::diagnose {

namespace {

Finding waits(const Analysis& a, Claims claims) {
  Finding finding;
  finding.claims = std::move(claims);
  finding.tiers = "NY";
  finding.confidence = Confidence::kMedium;
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  finding.evidence = recurrences(a);
  if (may_want_cores(a, s, finding.claims)) {
    finding.evidence.insert(finding.evidence.begin(), owner_sentence(s));
    finding.tiers |= "P";
  }
  finding.would_overturn = "headroom stacks shows other functions while the GPU is idle";
  return finding;
}

// What it does there may take so long because it has no core for it.
void add_starved(const Analysis& a, Finding& finding) {
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  if (may_want_cores(a, s, finding.claims)) finding.candidates.push_back(Cause::kCpuOversubscribed);
}

// More than it ran, and for about as long as the GPU was idle: who goes on after its kernels needs a core first. One
// that spins wants it all the while.
bool waits_for_cores(const Analysis& a, const Claims& claims) {
  const HostSummary s = host_during(a.job, a.devices, claims);
  const bool spins =
      std::any_of(claims.begin(), claims.end(), [&](const ClaimedPiece& p) { return a.devices[p.device].spins; });
  return !spins && s.owner_threads < a.limits[Threshold::kOtherThreads] &&
         s.owner_delay > s.owner_cpu + s.owner_threads && s.owner_delay >= a.limits[Threshold::kHelpersStarved] &&
         s.owner_delay >= a.limits[Threshold::kCovers] * part_claimed(claims);
}

}  // namespace

std::vector<Finding> idle_validation(const Analysis& a) {
  Claims claims = open_time(a, {Account::kValidationHost});
  if (!a.material(length(claims))) return {};
  Finding finding = waits(a, std::move(claims));
  finding.cause = Cause::kValidation;
  finding.title = "The GPU waits while the job validates";
  finding.advice = "validate less often or on fewer samples, compute its metrics on the GPU, or in another process";
  gains_at_most(a, finding, "if the GPU did not wait for validation at all", true);
  return only(std::move(finding));
}

std::vector<Finding> idle_copies(const Analysis& a) {
  Claims claims = open_time(a, {Account::kTransfer});
  if (!a.material(length(claims))) return {};
  Finding finding = waits(a, std::move(claims));
  finding.candidates = {Cause::kPageableCopies, Cause::kSyncPoints};
  add_starved(a, finding);
  finding.title = "The GPU waits for copies to it";
  finding.advice = "copy from pinned memory without waiting (pin_memory=True, non_blocking=True)";
  gains_at_most(a, finding, "if copies overlapped with the kernels");
  return only(std::move(finding));
}

std::vector<Finding> idle_sync(const Analysis& a) {
  Claims claims = open_time(a, {Account::kSync});
  if (!a.material(length(claims))) return {};
  Finding finding = waits(a, std::move(claims));
  finding.candidates = {Cause::kSyncPoints, Cause::kLaunchBound};
  if (has_ranks(a)) finding.candidates.push_back(Cause::kStraggler);  // its last kernels may wait for another's
  add_starved(a, finding);
  finding.title = "The GPU runs dry while the job synchronises with it";
  if (waits_for_cores(a, finding.claims)) {
    finding.candidates.clear();
    finding.cause = Cause::kCpuOversubscribed;
    finding.title = "The GPU runs dry while the thread that feeds it waits for a CPU core";
  }
  finding.advice = finding.cause ? "fewer processes or threads on these cores, or more cores"
                                 : "synchronise once in many steps: it empties the queue of kernels each time";
  gains_at_most(a, finding, "if the queue of kernels never ran empty");
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
