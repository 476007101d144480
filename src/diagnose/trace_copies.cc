// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/human.h"
#include "diagnose/named_code.h"
#include "diagnose/trace_waits.h"
#include "model/gpu_work.h"

namespace headroom::diagnose {

namespace {

// "aten::contiguous"; "" where no operator is around most of these copies.
std::string copied_by(const Analysis& a, std::initializer_list<GpuWork> kinds) {
  for (const GpuAnalysis& gpu : a.gpus) {
    if (!gpu.profile) continue;
    for (const GpuWork kind : kinds)
      if (const auto op = gpu.profile->copied_by.find(kind); op != gpu.profile->copied_by.end()) return op->second;
  }
  return "";
}

void name_copies_within(const Analysis& a, Finding& finding) {
  const std::string by = copied_by(a, {GpuWork::kCopyOnDevice});
  if (!by.empty()) finding.evidence.push_back(fmt::format("{} launches these copies", by));
  if (a.gpus.size() > 1) {
    finding.title = "The GPU copies to or from another one, or within its memory, and no kernel runs meanwhile";
    finding.candidates = {Cause::kDeviceCopies, Cause::kExposedCommunication};
    finding.advice =
        "to another GPU: send it while kernels run (micro-batches), or keep on one GPU what exchanges the most; within "
        "one: contiguous(), clone() and cat() once and not in each step";
    return;
  }
  finding.title = "The GPU copies within its memory, and no kernel runs meanwhile";
  finding.cause = Cause::kDeviceCopies;
  finding.advice =
      may_be_no_python(a)
          ? "fewer copies: let kernels write where the next one reads (two buffers in turns), in the layout that it "
            "needs"
          : "fewer copies: contiguous(), clone() and cat() once and not in each step, one memory format, in place";
}

// By the trace the memory of the host is pinned in all of its copies.
bool pinned_already(const Analysis& a) {
  const auto known = a.meta.extra.find("host_copies");
  return known != a.meta.extra.end() && known->second == "pinned";
}

void name_copies_to_host(const Analysis& a, double pageable, Finding& finding) {
  const std::string by = copied_by(a, {GpuWork::kCopyToHost, GpuWork::kPageableToHost});
  if (!by.empty()) finding.evidence.push_back(fmt::format("{} launches these copies", by));
  finding.title = "The GPU copies to the host, and no kernel runs meanwhile";
  finding.advice = may_be_no_python(a) ? "fetch results less often, or later: keep and add them up on the GPU; into "
                                         "pinned memory, on a stream of its "
                                         "own while kernels run"
                                       : "fetch results less often, or later: keep and add them up on the GPU; into "
                                         "pinned memory (non_blocking=True) "
                                         "while kernels run";
  if (pageable >= a.limits[Threshold::kMajority])
    finding.candidates = {Cause::kPageableCopies, Cause::kSyncPoints};
  else
    finding.cause = Cause::kSyncPoints;
  if (pinned_already(a))
    finding.advice =
        "fetch results less often, or later: keep and add them up on the GPU; on a stream of its own while kernels run";
}

struct CopyShares {
  double pageable = 0;  // within the device no memory of the host is in them
  double within = 0, peers = 0, to_host = 0, from_host = 0;
};

CopyShares copy_shares(const Analysis& a, const Claims& claims) {
  CopyShares shares;
  for (const NamedCode& copy : code_in(a, claims)) {
    const auto is = [&](GpuWork work) { return copy.place == info(work).name; };
    if (copy.place.starts_with("pageable")) shares.pageable += copy.share;
    if (is(GpuWork::kCopyOnDevice)) shares.within += copy.share;
    if (is(GpuWork::kCopyToPeer)) shares.peers += copy.share;
    if (is(GpuWork::kCopyToDevice) || is(GpuWork::kPageableToDevice)) shares.from_host += copy.share;
    if (is(GpuWork::kCopyToHost) || is(GpuWork::kPageableToHost)) shares.to_host += copy.share;
  }
  return shares;
}

}  // namespace

void name_copies(const Analysis& a, Finding& finding) {
  const auto [pageable, within, peers, to_host, from_host] = copy_shares(a, finding.claims);
  const double majority = a.limits[Threshold::kMajority];
  if (peers >= majority) {
    finding.title = "The GPU copies to or from another GPU, and no kernel runs meanwhile";
    finding.cause = Cause::kExposedCommunication;
    finding.advice =
        "send it while kernels run (a stream of its own, micro-batches), or keep on one GPU what exchanges the most";
    finding.remedy = Remedy{.fix = "overlap_communication",  // by a trace: no gradients are exchanged
                            .title = "Copy between GPUs while kernels run, or less",
                            .why_safe = "what is sent later must not be overwritten before",
                            .verify = "time per step; copies in a trace"};
    return;
  }
  if (within >= majority) return name_copies_within(a, finding);
  if (pinned_already(a))
    finding.evidence.push_back("by the trace the memory of the host is pinned in all copies from and to it");
  else if (pageable > 0 || to_host < majority)
    finding.evidence.push_back(fmt::format("{} of it is from or to pageable memory", human_percent(pageable)));
  if (to_host >= majority) {
    name_copies_to_host(a, pageable, finding);
    if (from_host >= a.limits[Threshold::kMaterial])
      finding.title = "The GPU copies to the host and from it, and no kernel runs meanwhile";
    return;
  }
  if (pageable >= majority) {
    finding.cause = Cause::kPageableCopies;
    if (may_be_no_python(a)) finding.advice = "copy from pinned memory (cudaHostAlloc), on a stream of its own";
    return;
  }
  finding.candidates = {Cause::kSyncPoints, Cause::kPcieOrNuma};
  finding.advice =
      may_be_no_python(a)
          ? "copy what comes next while kernels run: from pinned memory, on a stream of its own; or copy less"
          : "copy the next batch while kernels run: from pinned memory, on a stream of its own "
            "(non_blocking=True); or copy less";
  if (pinned_already(a))
    finding.advice = "copy what comes next while kernels run, on a stream of its own; or copy less";
}

void gains_of_copies(const Analysis& a, Finding& finding) {
  hides_behind_kernels(a, finding, "if there were none");
  if (finding.cause != Cause::kDeviceCopies || !finding.gain) return;
  const std::string overlapped = human_factor(finding.gain->high);
  const bool differs = !finding.gain->more.empty();
  gains_by_removal(a, finding.claims, finding,
                   Gain{.condition = "if there were no such copies",
                        .more = differs ? fmt::format("; {} if they overlapped with the kernels", overlapped) : ""});
}

}  // namespace headroom::diagnose
