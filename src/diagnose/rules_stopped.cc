// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/human.h"
#include "diagnose/rules.h"

namespace headroom::diagnose {

std::vector<Finding> stopped(const Analysis& a) {
  Finding finding;
  finding.claims = claim_accounts(a, {Account::kStopped});
  if (!a.material(finding.cost())) return {};
  finding.cause = Cause::kProcessStopped;
  finding.title = "The GPU waits while the process on it is stopped";
  finding.tiers = "NP";
  finding.confidence = Confidence::kHigh;
  const std::vector<Window> times = times_of(finding.claims);
  const bool goes_on = times.back().end >= a.window.end;
  finding.evidence = {fmt::format("{}: its process was seen in state T (stopped by a signal) from {} {}",
                                  a.device_name(finding.claims.front().device), a.when(times.front().begin),
                                  goes_on ? "on" : "to " + a.when(times.back().end))};
  finding.told_apart_from = {"code of the job: a stopped process runs none"};
  finding.advice =
      "see who stopped it: Ctrl-Z in its terminal, kill -STOP, or a scheduler that suspends jobs; kill -CONT PID lets "
      "it go on";
  constexpr std::size_t kOften = 3;
  if (times.size() < kOften) {
    gains_by_removal(a, finding, "if it had not been stopped");
  } else {
    finding.evidence.push_back(
        fmt::format("it was seen stopped {} times; what was over between two looks is not seen", times.size()));
    gains_at_most(a, finding, "if it had not been stopped", true);
  }
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
