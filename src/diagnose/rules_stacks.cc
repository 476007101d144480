// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"
#include "diagnose/host_waits.h"
#include "diagnose/idle_parts.h"
#include "diagnose/loop_role.h"
#include "diagnose/named_code.h"
#include "diagnose/rules.h"
#include "diagnose/words.h"
#include "model/named_causes.h"
#include "model/observations.h"

namespace headroom::diagnose {

namespace {

Finding waits(const Analysis& a, Claims claims) {
  Finding finding;
  finding.claims = std::move(claims);
  finding.tiers = "NY";
  finding.confidence = Confidence::kMedium;
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  finding.evidence = recurrences(a, finding.claims);
  if (may_want_cores(a, s, finding.claims)) {
    finding.evidence.insert(finding.evidence.begin(), owner_sentence(s));
    finding.tiers |= "P";
  }
  finding.would_overturn = kOtherFunctions;
  return finding;
}

// What it does there may take so long because it has no core for it.
void add_starved(const Analysis& a, Finding& finding) {
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  if (may_want_cores(a, s, finding.claims)) finding.candidates.push_back(Cause::kCpuOversubscribed);
}

// That a GPU runs dry while its process waits for kernels follows from more such looks than kernels ran for. Of few
// looks some are more by chance: three standard deviations are none.
void say_if_chance(const Analysis& a, Finding& finding) {
  const CodeShare& waits = a.code.kernel_waits;
  if (waits.looks <= 0 || is_profiled(a)) return;
  const double deviation = std::sqrt(waits.share * (1 - waits.share) / waits.looks);
  if (a.share(finding.cost()) >= 3 * deviation) return;
  finding.confidence = Confidence::kLow;
  finding.evidence.push_back(
      fmt::format("of {:.0f} looks at its stacks {} were at waits for kernels: of so few, {} may be chance",
                  waits.looks, human_percent(waits.share), human_percent(2 * deviation)));
}

// More than it ran, and for about as long as the GPU was idle: who goes on after its kernels needs a core first. One
// that spins wants it all the while.
bool waits_for_cores(const Analysis& a, const Claims& claims) {
  const HostSummary s = host_during(a.job, a.devices, claims);
  return !spins(a, claims) && s.owner_threads < a.limits[Threshold::kOtherThreads] &&
         s.owner_delay > s.owner_cpu + s.owner_threads && s.owner_delay >= a.limits[Threshold::kHelpersStarved] &&
         s.owner_delay >= a.limits[Threshold::kCovers] * part_claimed(claims);
}

// Bytes that take most of this time at the link's best are no matter of the memory that they come from; those that take
// it from pageable memory only, are.
void follow_the_link(const Analysis& a, Finding& finding) {
  may_be_the_link(a, finding);
  const auto taken = copying_at_the_link(a, finding.claims);
  if (!taken) return;
  if (*taken < a.limits[Threshold::kMajority]) {
    if (copying(a, finding.claims) < a.limits[Threshold::kCovers]) return;
    finding.candidates.clear();
    finding.cause = Cause::kPageableCopies;
    finding.evidence.push_back(fmt::format(
        "as many bytes came over PCIe as copies from pageable memory, at {:.0f} GB/s, take most of this time "
        "for; at the link's best they take {} of it",
        a.limits[Threshold::kPageable] / 1e9, human_percent(*taken)));
    return;
  }
  if (!over_a_narrow_link(a, finding.claims)) return;
  finding.candidates.clear();
  finding.cause = Cause::kPcieOrNuma;
  finding.title = "The GPU waits for copies over a link that is slower than it could be";
  finding.evidence.push_back(fmt::format("the bytes that came over it take {} of this time at its best",
                                         human_percent(std::min(1.0, *taken))));
  finding.told_apart_from = {"copies from pageable memory alone: pinned ones take most of this time, too"};
  finding.advice =
      "see why the link is slow (lspci -vv: LnkSta beside LnkCap): another slot, a riser, or the BIOS; copy less";
  finding.would_overturn =
      "nvidia-smi --query-gpu=pcie.link.gen.current,pcie.link.width.current --format=csv -l 1 while it copies: if the "
      "link "
      "has its full speed then, this is wrong";
}

// The driver clears memory that it gets back: an H200 counted as utilised for that (driver 580). What is copied from
// the device is not counted here.
void gives_memory_back(const Analysis& a, Finding& finding) {
  finding.title = "The GPU copies from or within its memory, or the driver clears it, and no kernel runs meanwhile";
  finding.candidates = {Cause::kAllocatorChurn, Cause::kSyncPoints};
  finding.advice =
      fmt::format("keep memory instead of giving it back each time ({})",
                  words_for(a.meta, {"torch.cuda.empty_cache(), a tensor of another size", "cudaFree, cudaMalloc"}));
}

// Where nearly all of it is the job's own code, and no kernel beside it, no batch makes it shorter: one function of it
// may.
void validates_in_code(const Analysis& a, Finding& finding) {
  constexpr double kNearlyAll = 0.8;  // of this time
  if (own_code(a, finding.claims) < kNearlyAll ||
      share_without_kernels(a, finding.claims, a.code.idle_shares) < kNearlyAll)
    return;
  const std::vector<NamedCode> code = code_in(a, finding.claims);
  const bool one =
      code[0].least >= a.limits[Threshold::kMajority] && is_of_one_account(a, code[0].where, Account::kValidationHost);
  const std::string what = one ? code[0].spot() : "its code on the CPU";
  finding.advice = fmt::format("make {} cheaper, or run it in another process; or validate less often", what);
  finding.remedy = Remedy{.fix = "larger_eval_batch",
                          .title = "Cheaper code of the validation, or beside the training",
                          .undo = "the code as it was",
                          .safety = Safety::kModerate};
  finding.remedy->why_safe = "the metric must stay the same: compare it on one validation";
}

}  // namespace

std::vector<Finding> idle_validation(const Analysis& a, const IdleParts& parts) {
  Claims claims = open_time(a, parts, {Account::kValidationHost});
  if (!a.material(length(claims) + length(parts.beside_validation))) return {};
  Finding finding = waits(a, std::move(claims));
  claim_waits_beside(a, parts.beside_validation, finding);
  finding.cause = Cause::kValidation;
  finding.title = "The GPU waits while the job validates";
  finding.advice = "validate less often or on fewer samples, compute its metrics on the GPU, or in another process";
  validates_in_code(a, finding);
  gains_at_most(a, finding, "if the GPU did not wait for validation at all", true);
  return only(std::move(finding));
}

std::vector<Finding> idle_copies(const Analysis& a, const IdleParts& parts) {
  Claims claims = united(open_time(a, parts, {Account::kTransfer}), parts.copies);
  if (!a.material(length(claims))) return {};
  Finding finding = waits(a, std::move(claims));
  finding.candidates = {Cause::kPageableCopies, Cause::kSyncPoints};
  add_starved(a, finding);
  finding.title = "The GPU waits for copies to it";
  // No stack is in them, and which way they went is not known.
  const Nanos by_readings = length_of(finding.claims, [](const ClaimedPiece& piece) { return piece.where < 0; });
  const bool read_only = 2 * by_readings > finding.cost();
  if (read_only) finding.title = "The GPU copies, and no kernel runs meanwhile";
  if (by_readings > 0)
    finding.evidence.push_back(
        fmt::format("for {} of it the driver counted the GPU as utilised while its compute engine was not active",
                    human_duration(by_readings)));
  finding.advice = words_for(a.meta, {"copy from pinned memory without waiting (pin_memory=True, non_blocking=True)",
                                      "copy from pinned memory (cudaHostAlloc) without waiting (cudaMemcpyAsync)"});
  exclude_copies(a, finding);
  if (read_only && !may_be(finding, Cause::kPageableCopies))
    gives_memory_back(a, finding);
  else
    follow_the_link(a, finding);
  gains_at_most(a, finding, "if the GPU did not wait for copies at all");
  return only(std::move(finding));
}

std::vector<Finding> idle_sync(const Analysis& a, const IdleParts& parts) {
  Claims claims = open_time(a, parts, {Account::kSync});
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
  say_if_chance(a, finding);
  finding.advice = finding.cause ? "fewer processes or threads on these cores, or more cores"
                                 : "synchronise once in many steps: it empties the queue of kernels each time";
  gains_at_most(a, finding, "if the queue of kernels never ran empty");
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
