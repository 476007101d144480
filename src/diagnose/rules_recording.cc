// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/human.h"
#include "diagnose/rules.h"
#include "diagnose/work_during.h"
#include "model/damage.h"
#include "model/losses.h"

namespace headroom::diagnose {

namespace {

Finding mostly(const Analysis& a, std::string title, std::vector<std::string> evidence) {
  Finding finding;
  finding.cause = Cause::kMonitoringMostlyElse;
  finding.confidence = Confidence::kHigh;
  finding.tiers = a.job.has_host ? "NP" : "N";
  finding.title = std::move(title);
  finding.evidence = std::move(evidence);
  finding.told_apart_from = {"a slow job: its own time is a small part of what was recorded"};
  finding.would_overturn = "record the job alone (headroom run -- CMD): if it looks like this recording, this is wrong";
  finding.advice = a.meta.origin == "run" ? "" : "record the job itself: headroom run -- CMD";
  return finding;
}

// From the first process of the job to its last, within the window.
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

// The processes of the job that hold a GPU at some time, and those above and below them.
std::set<SourceId> around_the_gpus(const Analysis& a) {
  std::map<SourceId, SourceId> parent;
  for (std::size_t id = 0; id < a.job.children.size(); ++id)
    for (const SourceId child : a.job.children[id]) parent[child] = static_cast<SourceId>(id);
  std::set<SourceId> around;
  for (const ContextUse& use : a.job.uses) {
    if (!use.ours || !use.process) continue;
    for (const SourceId below : descendants(a.job, *use.process)) around.insert(below);
    for (SourceId id = *use.process; around.insert(id).second && parent.contains(id);) id = parent[id];
  }
  return around;
}

}  // namespace

Claims before_the_first(const Analysis& a) {
  if (!a.job.has_job || !a.job.has_contexts || a.job.batch.present) return {};
  Nanos first = a.window.end;
  for (const ContextUse& use : a.job.uses)
    if (use.ours) first = std::min(first, use.begin);
  const std::set<SourceId> around = around_the_gpus(a);
  if (around.empty()) return {};
  const bool steps = std::any_of(a.processes.begin(), a.processes.end(), [&](const RecordedProcess& process) {
    return process.facts.in_job && !around.contains(process.source) && process.facts.end.value_or(first) < first;
  });
  if (steps) return {};
  const Claims free = claim(a, [&](std::size_t device, const Slice& slice) {
    return slice.account == Account::kNoTask && a.devices[device].used;
  });
  Claims start;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    if (const Nanos begin = job_lifetime(a).begin; begin < first)
      start.push_back({device, begin, first, Account::kNoTask, -1});
  return common(free, start);
}

// Between the steps of a script: the job goes on, and none of its processes is on the GPU.
std::vector<Finding> no_process_there(const Analysis& a) {
  if (!a.job.has_job || !a.job.has_contexts || a.job.batch.present) return {};
  const Window life = job_lifetime(a);
  Finding finding;
  std::set<std::pair<std::size_t, Nanos>> begins;
  finding.claims = claim(a, [&](std::size_t device, const Slice& slice) {
    return slice.account == Account::kNoTask && a.devices[device].used && slice.end > life.begin &&
           slice.begin < life.end;
  });
  finding.claims = without(finding.claims, before_the_first(a));
  for (const ClaimedPiece& piece : finding.claims) begins.insert({piece.device, piece.begin});
  if (!a.material(finding.cost())) return {};
  const Work work = work_during(a, finding.claims, [](const RecordedProcess& process) { return process.facts.in_job; });
  finding.confidence = Confidence::kMedium;
  finding.tiers = "NP";
  finding.title = "The job went on while none of its processes was on the GPU";
  if (!a.job.has_host) {
    finding.tiers = "N";
    finding.candidates = {Cause::kEnvironmentInstall, Cause::kEpochEndHostWork, Cause::kValidation, Cause::kSlowStorage,
                          Cause::kLoggingUpload};
    finding.evidence = {"what it did meanwhile was not recorded"};
    finding.advice = "see in the script what comes between the steps that use the GPU, then overlap it with them";
  } else if (work.cores >= a.limits[Threshold::kHelpersAtWork]) {
    finding.candidates = {Cause::kEpochEndHostWork, Cause::kValidation};
    finding.evidence = {fmt::format("meanwhile it used {:.2g} cores, {:.2g} of them process {} ({})", work.cores,
                                    work.most, work.busiest.pid, name_of(work.busiest))};
    finding.advice =
        "run the steps that need no GPU beside the others, or before a GPU is asked for; if these were meant to use "
        "it, "
        "check that they can (torch.cuda.is_available())";
  } else {
    finding.candidates = {Cause::kSlowStorage, Cause::kLoggingUpload, Cause::kEpochEndHostWork};
    finding.evidence = {
        "meanwhile it hardly used the CPU: it slept, or waited for a copy, a download or somebody else"};
    finding.advice = "see in the script what comes between the steps that use the GPU, then overlap it with them";
  }
  finding.evidence.push_back("the end of a process is known to a sample only");
  finding.told_apart_from = {"an idle GPU of a running step: the driver listed no process of the job there"};
  finding.would_overturn = "nvidia-smi in that time: if it lists a process of the job, this is wrong";
  // Of a process that ended, the time until the sample that found it gone is booked as its tear-down.
  const Claims ends = claim(a, [&](std::size_t device, const Slice& slice) {
    return slice.account == Account::kTeardown && begins.contains({device, slice.end});
  });
  Claims own = std::exchange(finding.claims, united(finding.claims, ends));
  gains_by_removal(a, finding, "if these steps ran beside the others");
  finding.claims = std::move(own);
  return only(std::move(finding));
}

namespace {

bool after_its_loss(const Analysis& a, std::size_t device, const Slice& slice) {
  return std::any_of(a.lost.begin(), a.lost.end(), [&](const LostDevice& lost) {
    return lost.source == a.devices[device].source && slice.end > lost.at;
  });
}

}  // namespace

std::vector<Finding> losses(const Analysis& a) {
  Finding finding;
  const bool whole = a.window.begin <= a.meta.start && a.window.end >= a.meta.end;
  bool unread = false, full = false;
  for (const Loss& loss : a.losses) {
    if (loss.count <= 0 || loss.severity < Severity::kDataLoss || (!whole && loss.places.empty())) continue;
    if (is_little(loss, a.meta.end - a.meta.start)) continue;
    unread = unread || lost_in_reading(loss);
    full = full || loss.what == info(LossKind::kRowNotRecorded).name;
    finding.evidence.push_back(
        fmt::format("{}: {}{}{}", loss.what, human_count(loss.count), loss.detail.empty() ? "" : "; ", loss.detail));
  }
  // What was lost, or never reported, has a finding of its own.
  Claims unobserved = claim(a, [&](std::size_t device, const Slice& slice) {
    return slice.account == Account::kUnobserved && !a.unreported[device] && !after_its_loss(a, device, slice);
  });
  const double shortest = a.limits[Threshold::kGapIntervals] * static_cast<double>(a.meta.interval);
  const bool long_enough = static_cast<double>(a.ledger.span()) >= shortest;  // else there was no time for samples
  if (a.material(length(unobserved)) && long_enough) {
    finding.evidence.push_back(
        fmt::format("{} of the time is covered by no sample", human_percent(a.share(length(unobserved)))));
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
      : full
          ? "record again with more room on the disk, or on a faster one: if rows are lost again, this is wrong"
          : "record again: if the gaps stay, the driver or the machine does not answer in that time (headroom doctor)";
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
