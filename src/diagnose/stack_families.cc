// SPDX-License-Identifier: Apache-2.0
#include "diagnose/stack_families.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/human.h"
#include "diagnose/host_stacks.h"
#include "diagnose/host_waits.h"
#include "diagnose/idle_parts.h"
#include "diagnose/named_code.h"
#include "diagnose/words.h"
#include "model/named_causes.h"

namespace headroom::diagnose {

namespace {

// Such code launches kernels, unless what it is given lies on the CPU, as with an optimizer that is offloaded: kernels
// that run beside it tell.
void follow_the_launches(const Analysis& a, Nanos launching, Finding& finding) {
  constexpr double kNearlyAll = 0.8;
  if (!may_be(finding, Cause::kLaunchBound) || !is_most(a, launching, finding.cost())) return;
  const bool alone = share_without_kernels(a, finding.claims, a.code.launch_idle_shares) >= kNearlyAll;
  finding.title = alone ? "The GPU waits for code of the framework that computes on the CPU, or launches short kernels "
                          "one by one"
                        : "The GPU waits for the code that launches its kernels";
  std::erase_if(finding.candidates, [&](Cause cause) {
    return cause == Cause::kInputInMainProcess || (cause == Cause::kHostGraphBuilding && !alone) ||
           cause == Cause::kSlowStorage;  // what is read is libraries, or another part of the readings'
  });
  // Who is hardly ever seen to wait for its kernels does not run dry by waiting for them.
  if (a.code.kernel_waits.share < a.limits[Threshold::kMaterial] && a.code.calls_named &&
      std::erase(finding.candidates, Cause::kSyncPoints) > 0)
    finding.told_apart_from.push_back(
        fmt::format("synchronising: its main thread waited for its kernels in {} of the looks at its stacks",
                    human_percent(a.code.kernel_waits.share)));
  put_first(finding.candidates, Cause::kLaunchBound);
  if (alone) {
    put_first(finding.candidates, Cause::kHostGraphBuilding);
    finding.evidence.push_back("hardly a kernel ran while it was in that code");
  }
  finding.advice = fmt::format(
      "{}launch fewer, larger kernels there (torch.compile, CUDA graphs, a fused optimiser)",
      alone ? "see where its data is: what is on the CPU belongs on the GPU, or that step beside the kernels; else "
            : "");
  if (finding.candidates.size() > 1) return;
  finding.cause = Cause::kLaunchBound;
  finding.candidates.clear();
}

// Metrics read no data, prepare none and save no state: in pauses they belong to a validation or the end of an epoch.
void follow_the_metrics(bool in_pauses, Finding& finding) {
  if (!may_be(finding, in_pauses ? Cause::kValidation : Cause::kHostGraphBuilding)) return;
  std::erase_if(finding.candidates, [&](Cause cause) {
    return cause == Cause::kInputInMainProcess || cause == Cause::kSlowStorage || cause == Cause::kCheckpointSync ||
           cause == Cause::kDuplicatePreprocessing || (in_pauses && cause == Cause::kHostGraphBuilding);
  });
  finding.title = gpu_waits(in_pauses, "for metrics in the training process");
}

// A call that launches a kernel takes microseconds. Who is seen in such calls again and again, runs all the while and
// hardly waits for its kernels launches so many that each of them is short, and what runs between is a part of that.
void follow_the_launch_calls(const Analysis& a, const HostSummary& s, bool in_pauses, Finding& finding) {
  constexpr double kOften = 0.05, kAllTheWhile = 0.8;  // of the looks; of the time
  constexpr double kFewest = 50;                       // looks: of fewer, these few may be chance
  const CodeShare& calls = a.code.launch_calls;
  if (in_pauses || calls.share < kOften || calls.looks < kFewest || s.owner_cpu < kAllTheWhile ||
      spins(a, finding.claims) || a.code.kernel_waits.share >= a.limits[Threshold::kChannelShare] ||
      !may_be(finding, Cause::kLaunchBound))
    return;
  finding.title = "The GPU waits for the code that launches its kernels, one by one";
  finding.evidence.push_back(
      fmt::format("{} of the looks at its stacks were in calls that launch one kernel each, in {}: such a call takes "
                  "microseconds, so that it launches thousands of them in a second",
                  human_percent(calls.share), calls.place));
  finding.cause = Cause::kLaunchBound;
  finding.candidates.clear();
  finding.advice =
      "launch fewer, larger kernels there (CUDA graphs, fused kernels), or make what each launch takes on "
      "the CPU cheaper";
}

}  // namespace

void follow_the_family(const Analysis& a, const HostSummary& s, bool in_pauses, Finding& finding) {
  std::map<stacks::Family, Nanos> families;
  for (const ClaimedPiece& piece : finding.claims) families[family_of(a, piece)] += piece.end - piece.begin;
  Nanos launching = 0;
  for (const stacks::Family family : {stacks::Family::kForward, stacks::Family::kBackward, stacks::Family::kOptimizer})
    launching += families[family];
  follow_the_launches(a, launching, finding);
  follow_the_launch_calls(a, s, in_pauses, finding);
  if (is_most(a, families[stacks::Family::kMetrics], finding.cost())) follow_the_metrics(in_pauses, finding);
  constexpr std::array kCauses{std::pair(stacks::Family::kLogging, Cause::kLoggingUpload),
                               std::pair(stacks::Family::kGraph, Cause::kHostGraphBuilding),
                               std::pair(stacks::Family::kGarbage, Cause::kHostGraphBuilding),
                               std::pair(stacks::Family::kCompile, Cause::kCompileWarmup),
                               std::pair(stacks::Family::kAllocator, Cause::kAllocatorChurn)};
  for (const auto& [family, cause] : kCauses) {
    if (!is_most(a, families[family], finding.cost())) continue;
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
    if (family == stacks::Family::kAllocator)
      finding.advice = "leave that call out: the framework keeps freed memory for what is allocated next";
    if (family == stacks::Family::kGarbage)
      finding.advice =
          "call gc.collect() less often, or not at all: Python counts references besides; gc.freeze() after the set-up "
          "makes "
          "each call cheaper";
  }
}

void follow_the_plain(const Analysis& a, const HostSummary& s, Finding& finding) {
  constexpr double kMostly = 2.0 / 3;
  const double share = plain_share(a, finding.claims);
  if (share < kMostly) return;
  const bool drained = a.code.kernel_waits.share >= a.limits[Threshold::kChannelShare] &&
                       ran_at_most(s, finding.claims) >= a.limits[Threshold::kCovers];
  const auto uses_gpu = [&](Cause cause) {
    return cause == Cause::kLaunchBound || (cause == Cause::kSyncPoints && !drained) || cause == Cause::kPageableCopies;
  };
  if (std::erase_if(finding.candidates, uses_gpu) > 0)
    finding.told_apart_from.push_back(
        fmt::format("launching kernels{}: in {} of this time its stacks were in Python's own library, or in calls that "
                    "use no GPU",
                    drained ? "" : ", and waiting for them", human_percent(share)));
}

}  // namespace headroom::diagnose
