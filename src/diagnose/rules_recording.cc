// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "diagnose/rules.h"

namespace headroom::diagnose {

namespace {

// `cost` is the recorded time that is not the job's.
Finding mostly(const Case& c, std::string title, Nanos cost, std::vector<std::string> evidence) {
  Finding finding;
  finding.cause = Cause::kMonitoringMostlyElse;
  finding.cost = cost;
  finding.confidence = Confidence::kHigh;
  finding.tier = c.job.has_host ? "NP" : "N";
  finding.title = std::move(title);
  finding.evidence = std::move(evidence);
  finding.told_apart_from = {"a slow job: its own time is a small part of what was recorded"};
  finding.would_overturn = "a recording of the job alone with the same means";
  finding.advice = "record the job itself: headroom run -- CMD";
  return finding;
}

// How long processes of the job lived within the span.
Nanos job_lifetime(const Case& c) {
  Nanos first = c.ledger().end, last = c.ledger().begin;
  for (const SourceId id : c.recording.all(SourceKind::kProcess)) {
    const Process process = process_of(c.recording.sources[static_cast<std::size_t>(id)]);
    if (!process.in_job) continue;
    first = std::min(first, std::max(process.start, c.ledger().begin));
    last = std::max(last, std::min(process.end.value_or(c.ledger().end), c.ledger().end));
  }
  return std::max<Nanos>(0, last - first);
}

}  // namespace

std::vector<Finding> mostly_something_else(const Case& c) {
  const Nanos span = c.ledger().span();
  if (c.options.job_duration && *c.options.job_duration > 0 && *c.options.job_duration < span) {
    const Nanos busy = c.ledger().busy();
    const Nanos most = *c.options.job_duration * static_cast<Nanos>(std::max<std::size_t>(1, c.times.size()));
    if (2 * *c.options.job_duration < span || busy > most)
      return {mostly(
          c, "The recording covers mostly something other than the job", c.ledger().budget() - most,
          {fmt::format("the job ran for {}, the recording covers {}", human_duration(*c.options.job_duration),
                       human_duration(span)),
           fmt::format("{} busy GPU time was recorded; the job can account for {} at most{}", human_duration(busy),
                       human_duration(most), busy > most ? ": most of it was something else" : "")})};
    return {};
  }
  if (c.job.has_job && span > 0 && !c.job.batch.present) {
    const Nanos lifetime = job_lifetime(c);
    if (2 * lifetime < span)
      return {mostly(
          c, "The recording covers mostly time without the job", (span - lifetime) * static_cast<Nanos>(c.times.size()),
          {fmt::format("processes of the job lived for {} of {}", human_duration(lifetime), human_duration(span))})};
    const Nanos foreign = c.ledger().total(Account::kForeign), own = c.ledger().total(Account::kUseful);
    if (foreign > own && c.share(foreign) >= kMaterial)
      return {mostly(c, "Most of the recorded GPU work was not the job's", foreign,
                     {fmt::format("kernels of other processes ran for {}, the job's for {}", human_duration(foreign),
                                  human_duration(own))})};
  }
  return {};
}

std::vector<Finding> losses(const Case& c) {
  std::vector<std::string> evidence;
  for (const Loss& loss : c.recording.losses)
    if (loss.count > 0 && loss.severity >= Severity::kDataLoss)
      evidence.push_back(
          fmt::format("{}: {}{}{}", loss.what, human_count(loss.count), loss.detail.empty() ? "" : "; ", loss.detail));
  const Nanos unobserved = c.ledger().total(Account::kUnobserved);
  const bool long_enough = c.ledger().span() >= 3 * c.recording.meta.interval;  // else there was no time for samples
  if (c.share(unobserved) >= kMaterial && long_enough)
    evidence.push_back(fmt::format("{} of the time is covered by no sample", human_percent(c.share(unobserved))));
  if (evidence.empty()) return {};
  Finding finding;
  finding.cause = Cause::kRecordingLosses;
  finding.cost = c.share(unobserved) >= kMaterial && long_enough ? unobserved : 0;
  finding.confidence = Confidence::kHigh;
  finding.tier = "N";
  finding.title = "The recording has gaps";
  finding.evidence = std::move(evidence);
  finding.told_apart_from = {"an idle GPU: idle time has samples that say so"};
  finding.would_overturn = "a recording of the same time without gaps";
  return {finding};
}

}  // namespace headroom::diagnose
