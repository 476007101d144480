// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/human.h"
#include "diagnose/core_waits.h"
#include "diagnose/rules.h"
#include "diagnose/words.h"

namespace headroom::diagnose {

std::vector<Finding> wanting_cores(const Analysis& a, const IdleParts& parts) {
  const auto waits = core_waits(a);
  if (!waits || parts.cores.empty()) return {};
  Finding finding;
  finding.claims = parts.cores;
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  finding.cause = Cause::kCpuOversubscribed;
  finding.title = "The training process waits for a CPU core";
  finding.tiers = "NP";
  if (a.code.kernel_waits.share > 0) finding.tiers |= "Y";
  finding.confidence = Confidence::kMedium;
  finding.evidence = {
      fmt::format(
          "from its first kernel to its last one its main thread was ready to run and had no core for {} of the "
          "time; for some {} or more the GPU was idle meanwhile, of {} in all",
          human_percent(waits->waited), human_percent(waits->at_least), human_percent(waits->idle)),
      owner_sentence(s), helper_sentence(s)};
  append(finding.evidence, cores_sentence(s));
  append(finding.evidence, recurrences(a, finding.claims));
  finding.would_overturn = kCoresOfItsOwn;
  finding.advice = advice_for_cores(s);
  gains_at_most(a, finding, "if the GPU did not wait for that process at all");
  gains_the_wait(a, finding, waits->waited_of_all, waits->ran_of_all, "its main thread");
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
