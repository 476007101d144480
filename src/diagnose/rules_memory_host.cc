// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/human.h"
#include "diagnose/host_memory.h"
#include "diagnose/idle_parts.h"
#include "diagnose/rules.h"
#include "diagnose/words.h"

namespace headroom::diagnose {

namespace {

constexpr double kPage = 4096;  // bytes, the smallest: what was read beside pages swapped in is no less than this says

Finding waits(const Analysis& a, const Claims& claims, const HostSummary& s) {
  Finding finding;
  finding.claims = claims;
  finding.tiers = "NP";
  finding.confidence = Confidence::kMedium;
  finding.evidence = memory_sentences(a, s);
  append(finding.evidence, {owner_sentence(s), helper_sentence(s)});
  append(finding.evidence, storage_sentences(s));
  append(finding.evidence, recurrences(a, finding.claims));
  return finding;
}

Finding swaps(const Analysis& a, const Claims& claims) {
  const HostSummary s = host_during(a.job, a.devices, claims);
  Finding finding = waits(a, claims, s);
  const double files = s.owner_read.value_or(0) + s.helper_read.value_or(0) - kPage * s.swapped_in.value_or(0);
  finding.title = "The GPU waits while memory of the job is swapped in";
  if (files >= a.limits[Threshold::kReading]) {
    finding.candidates = {Cause::kSwapThrash, Cause::kSlowStorage};
    finding.title = "The GPU waits for storage, from which memory is swapped in and files are read";
  } else {
    finding.cause = Cause::kSwapThrash;
    if (s.owner_read || s.helper_read)
      finding.told_apart_from = {"slow storage: beside the pages that were swapped in hardly anything was read"};
  }
  finding.would_overturn = info(Cause::kSwapThrash).overturn;
  finding.advice = "take less host memory: fewer loader workers or copies of the data; or more memory";
  gains_at_most(a, finding, "if no page had to be swapped in");
  return finding;
}

Finding reads_again(const Analysis& a, const Claims& claims) {
  const HostSummary s = host_during(a.job, a.devices, claims);
  Finding finding = waits(a, claims, s);
  finding.title = "The GPU waits for data that does not stay in the page cache";
  if (waits_for_memory_itself(a, s)) {
    finding.cause = Cause::kPageCacheThrash;
  } else {  // whose wait for memory it was is not counted
    finding.candidates = {Cause::kPageCacheThrash, Cause::kSlowStorage};
    finding.title = "The GPU waits for data that waits for storage, while memory is short";
    finding.confidence = Confidence::kLow;
  }
  if (s.swapped_in) finding.told_apart_from = {"swapping: hardly a page was swapped in"};
  finding.would_overturn = info(Cause::kPageCacheThrash).overturn;
  finding.advice = "take less memory beside the data: fewer loader workers or copies, a smaller format; or more memory";
  gains_at_most(a, finding, "if the data stayed in memory");
  return finding;
}

}  // namespace

std::vector<Finding> wanting_memory(const Analysis& a, const IdleParts& parts) {
  std::vector<Finding> findings;
  if (!parts.swapping.empty()) findings.push_back(swaps(a, parts.swapping));
  if (!parts.rereading.empty()) findings.push_back(reads_again(a, parts.rereading));
  return findings;
}

}  // namespace headroom::diagnose
