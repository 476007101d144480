// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "diagnose/restarts.h"
#include "diagnose/rules.h"

namespace headroom::diagnose {

std::vector<Finding> startup(const Analysis& a) {
  Finding finding;
  finding.claims = without(claim_accounts(a, {Account::kStartup}), installing(a));
  if (!a.material(finding.cost())) return {};
  if (auto churn = trial_churn(a, finding.claims)) return only(std::move(*churn));
  finding.candidates = {Cause::kStartupLoad, Cause::kCompileWarmup};
  finding.tiers = "NP";
  finding.confidence = Confidence::kHigh;
  std::size_t starts = 0;
  Nanos longest = 0, begin = 0;
  Slice last;
  for (const DeviceTime& time : a.devices)
    for (const Slice& slice : time.slices)
      if (slice.account == Account::kStartup && !a.held_for_nothing(slice)) {
        const bool goes_on = slice.begin == last.end && slice.pid == last.pid && slice.task == last.task;
        begin = goes_on ? begin : slice.begin;
        starts += goes_on ? 0U : 1U;
        longest = std::max(longest, slice.end - begin);
        last = slice;
      }
  finding.title = "Start-up: the time from process start to the first kernel";
  finding.evidence.push_back(fmt::format("{} stretch{} of start-up, the longest {}", starts, starts == 1 ? "" : "es",
                                         human_duration(longest)));
  const Nanos compiled = compiling(a, finding.claims);
  if (!finding.cause && compiled > 0) {
    std::reverse(finding.candidates.begin(), finding.candidates.end());
    if (static_cast<double>(compiled) >= a.limits[Threshold::kMajority] * static_cast<double>(finding.cost())) {
      finding.candidates.clear();
      finding.cause = Cause::kCompileWarmup;
    }
    finding.evidence.push_back(
        fmt::format("compilers that the job started ran for {} of it", human_duration(compiled)));
  }
  if (const auto row = in_turn(a); !finding.cause && !a.job.batch.present && many_in_turn(a, row)) {
    finding.candidates.clear();
    finding.cause = Cause::kTrialChurn;
    finding.confidence = Confidence::kMedium;
    finding.title = fmt::format("At least {} processes one after the other each start from nothing", row.size());
    finding.evidence.front() = fmt::format(
        "{} stretch{} of start-up seen, the longest {}; the driver's list is read now "
        "and then, and what is gone by then is not in it",
        starts, starts == 1 ? "" : "es", human_duration(longest));
    if (failed(a)) {  // then each may have been one more try
      finding.cause.reset();
      finding.candidates = {Cause::kTrialChurn, Cause::kOomRestartLoop};
      finding.evidence.push_back(fmt::format("the job ended with exit code {}", *a.meta.exit_code));
    }
  }
  finding.told_apart_from = {"input and host code: no kernel had run yet"};
  finding.would_overturn = "run it twice in a row: if the second start is as slow, it is code, not loading";
  finding.advice = "in a sweep, keep the process warm between trials; cache the data index; import late";
  gains_by_removal(a, finding, "for runs of this length; less for longer ones");
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
