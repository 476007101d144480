// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyze/ends.h"
#include "base/human.h"
#include "diagnose/rules.h"
#include "diagnose/unseen.h"
#include "model/damage.h"
#include "model/losses.h"
#include "model/observations.h"

namespace headroom::diagnose {

Window job_lifetime(const Analysis& a) {
  if (a.meta.origin == "run" && !a.job.has_host) return a.window;  // whatever ran, it was the job
  Window life{a.window.end, a.window.begin};
  for (const auto& [source, process] : a.processes) {
    if (!process.in_job) continue;
    life.begin = std::min(life.begin, std::max(process.start, a.window.begin));
    life.end = std::max(life.end, std::min(process.end.value_or(a.window.end), a.window.end));
  }
  if (life.end < life.begin) life.end = life.begin;
  return life;
}

namespace {

Finding mostly(const Analysis& a, std::string title, std::vector<std::string> evidence) {
  Finding finding;
  finding.cause = Cause::kMonitoringMostlyElse;
  finding.confidence = Confidence::kHigh;
  finding.tiers = a.job.has_host ? "NP" : "N";
  finding.title = std::move(title);
  finding.evidence = std::move(evidence);
  finding.told_apart_from = {"a slow job: its own time is a small part of what was recorded"};
  finding.advice = a.meta.origin == "run" ? "" : "record the job itself: headroom run -- CMD";
  return finding;
}

// A person said how long the job ran. Which part of the time was its cannot be told, so this claims none.
std::vector<Finding> longer_than_told(const Analysis& a, Nanos told) {
  const Nanos span = a.ledger.span(), busy = a.ledger.busy();
  const Nanos most = told * static_cast<Nanos>(std::max<std::size_t>(1, a.devices.size()));
  const double told_share = static_cast<double>(told) / static_cast<double>(span);
  const bool smaller_part = told_share < a.limits[Threshold::kJobLifetime];
  if (!smaller_part && busy <= most) return {};
  std::string excess;
  if (busy > most)
    excess = busy - most > most ? ": most of it was something else"
                                : fmt::format(": at least {} of it was something else", human_duration(busy - most));
  return {mostly(a,
                 smaller_part ? "The recording covers mostly something other than the job"
                              : "Part of the recorded GPU work was not the job's",
                 {fmt::format("the job ran for {}, this time is {}", human_duration(told), human_duration(span)),
                  fmt::format("{} busy GPU time was recorded; the job can account for {} at most{}",
                              human_duration(busy), human_duration(most), excess)})};
}

}  // namespace

std::vector<Finding> mostly_something_else(const Analysis& a) {
  const Nanos span = a.ledger.span();
  if (a.told.job_duration && *a.told.job_duration > 0 && *a.told.job_duration < span)
    return longer_than_told(a, *a.told.job_duration);
  if (!a.job.has_job || span <= 0 || a.job.batch.present) return {};
  const Window life = job_lifetime(a);
  if (static_cast<double>(life.length()) >= a.limits[Threshold::kJobLifetime] * static_cast<double>(span)) return {};
  Finding finding = mostly(
      a, "The recording covers mostly time without the job",
      {fmt::format("processes of the job lived for {} of {}", human_duration(life.length()), human_duration(span))});
  finding.claims = claim(a, [&](std::size_t, const Slice& slice) {
    return slice.account == Account::kNoTask && (slice.end <= life.begin || slice.begin >= life.end);
  });
  return only(std::move(finding));
}

namespace {

// Looks that came some milliseconds late, or never, in so little time that nothing which is told rests on it.
bool hardly_missed(const Analysis& a, const Loss& loss) {
  if (loss.what != info(LossKind::kMissedTick).name || loss.places.empty()) return false;
  Nanos missed = 0;
  for (const LossPlace& place : loss.places) missed += place.end - place.begin;
  return !a.material(missed);
}

}  // namespace

std::vector<Finding> losses(const Analysis& a) {
  Finding finding;
  const bool whole = a.window.begin <= a.meta.start && a.window.end >= a.meta.end;
  const bool imported = is_imported(a.meta);
  bool unread = false, full = false;
  for (const Loss& loss : a.losses) {
    if (!is_a_problem(loss, a.meta) || (!whole && loss.places.empty()) || hardly_missed(a, loss)) continue;
    const bool late = loss.what == info(LossKind::kMissedTick).name;
    unread = unread || lost_in_reading(loss);
    full = full || loss.what == info(LossKind::kRowNotRecorded).name;
    finding.evidence.push_back(fmt::format("{}: {}{}{}", late ? "looks that were left out" : loss.what,
                                           human_count(loss.count), loss.detail.empty() ? "" : "; ", loss.detail));
  }
  // What was lost, or never reported, has a finding of its own.
  Claims unobserved = claim(a, [&](std::size_t device, const Slice& slice) {
    return slice.account == Account::kUnobserved && !a.gpus[device].unreported;
  });
  for (const LostDevice& lost : a.lost) unobserved = without(unobserved, unread_by_loss(a, lost));
  const double shortest = a.limits[Threshold::kGapIntervals] * static_cast<double>(a.meta.interval);
  const bool long_enough = static_cast<double>(a.ledger.span()) >= shortest;  // else there was no time for samples
  if (a.material(length(unobserved)) && long_enough) {
    const std::string part = human_percent(a.share(length(unobserved)));
    finding.evidence.push_back(imported
                                   ? fmt::format("for {} of the time the log has no value of the utilisation", part)
                                   : fmt::format("{} of the time is covered by no sample", part));
    finding.claims = std::move(unobserved);
  }
  if (finding.evidence.empty()) return {};
  finding.cause = Cause::kRecordingLosses;
  finding.confidence = Confidence::kHigh;
  finding.tiers = "N";
  finding.title = unread ? "A part of the recording could not be read" : "The recording has gaps";
  finding.told_apart_from = {"an idle GPU: idle time has samples that say so"};
  finding.would_overturn =
      unread ? "copy the file again from where it came; if it is no better there, record again"
      : full ? "record again with more room on the disk, or on a faster one: if rows are lost again, this is wrong"
      : imported
          ? "the log itself: if it has a value of the utilisation in that time, this is wrong"
          : "record again: if the gaps stay, the driver or the machine does not answer in that time (headroom doctor)";
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
