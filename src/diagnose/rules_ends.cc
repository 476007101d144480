// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "diagnose/rules.h"

namespace headroom::diagnose {

namespace {

bool overlaps(const Claims& claims, Nanos begin, Nanos end) {
  return std::any_of(claims.begin(), claims.end(),
                     [&](const ClaimedPiece& piece) { return piece.begin < end && piece.end > begin; });
}

}  // namespace

std::vector<Finding> startup(const Analysis& a) {
  Finding finding;
  finding.claims = claim_accounts(a, {Account::kStartup});
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
  for (const auto& [source, process] : a.processes) {
    if (process.comm != "pip" && process.comm != "conda" && process.comm != "apt-get") continue;
    if (!process.in_job || !overlaps(finding.claims, process.start, process.end.value_or(a.window.end))) continue;
    finding.candidates.clear();
    finding.cause = Cause::kEnvironmentInstall;
    finding.evidence.push_back(fmt::format("process {} of the job is {}", process.pid, process.comm));
    break;
  }
  finding.told_apart_from = {"input and host code: no kernel had run yet"};
  finding.would_overturn = "a second run, with warm caches, that starts as slowly: then it is code, not loading";
  finding.advice = "in a sweep, keep the process warm between trials; cache the data index; import late";
  gains_by_removal(a, finding, "for runs of this length; less for longer ones");
  return only(std::move(finding));
}

namespace {

std::int64_t holder(const Analysis& a, const ClaimedPiece& piece) {
  const auto& slices = a.devices[piece.device].slices;
  const auto first = std::upper_bound(slices.begin(), slices.end(), piece.begin,
                                      [](Nanos at, const Slice& slice) { return at < slice.end; });
  return first == slices.end() ? 0 : first->pid;
}

}  // namespace

std::vector<Finding> unreleased(const Analysis& a) {
  const Nanos lasting = a.limits.time(Threshold::kHeldLong);
  Finding finding;
  // Many short ones are the ends of processes, not a device kept.
  finding.claims = claim_accounts(a, {Account::kTeardown, Account::kHung});
  std::erase_if(finding.claims, [&](const ClaimedPiece& piece) { return piece.end - piece.begin < lasting; });
  if (!a.material(finding.cost())) return {};
  const HostSummary& s = a.host;
  finding.tiers = a.job.has_host ? "NP" : "N";
  finding.title = "The GPU was held after its last kernel";
  const bool hung = std::any_of(finding.claims.begin(), finding.claims.end(),
                                [](const ClaimedPiece& piece) { return piece.account == Account::kHung; });
  const bool quiet = hung || (s.owners > 0 && s.waiting_in({WaitChannel::kFutex, WaitChannel::kPoll}) >
                                                  a.limits[Threshold::kHeldQuiet]);
  if (quiet)
    finding.candidates = {Cause::kUnreleasedAfterWork, Cause::kHang};
  else
    finding.cause = Cause::kUnreleasedAfterWork;
  if (hung) {
    std::reverse(finding.candidates.begin(), finding.candidates.end());
    finding.title = "Nothing of the job moved after its last kernel";
  }
  for (const ClaimedPiece& piece : finding.claims)
    finding.evidence.push_back(fmt::format("{}: no kernel from {} on, for {}, while process {} held its context",
                                           a.device_name(piece.device), a.when(piece.begin),
                                           human_duration(piece.end - piece.begin), holder(a, piece)));
  finding.told_apart_from = {"validation or a pause: no kernel came afterwards"};
  finding.would_overturn = "a longer recording in which kernels come back";
  finding.advice = "end the process, or free the device, before uploads and post-processing";
  finding.bound = "the time in which it was held comes back";
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
