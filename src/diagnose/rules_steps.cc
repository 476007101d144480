// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analyze/ends.h"
#include "base/human.h"
#include "diagnose/rules.h"
#include "diagnose/work_during.h"
#include "model/observations.h"

// Scripts whose steps take the GPU in turns with steps that do not.
namespace headroom::diagnose {

std::set<SourceId> towards_the_gpus(const Analysis& a) {
  std::map<SourceId, SourceId> parent;
  for (std::size_t id = 0; id < a.job.children.size(); ++id)
    for (const SourceId child : a.job.children[id]) parent[child] = static_cast<SourceId>(id);
  std::set<SourceId> towards;
  for (const ContextUse& use : a.job.uses)
    if (use.ours && use.process)
      for (SourceId id = *use.process; towards.insert(id).second && parent.contains(id);) id = parent[id];
  return towards;
}

namespace {

// ... and those below them.
std::set<SourceId> around_the_gpus(const Analysis& a) {
  std::set<SourceId> around = towards_the_gpus(a);
  for (const ContextUse& use : a.job.uses)
    if (use.ours && use.process)
      for (const SourceId below : descendants(a.job, *use.process)) around.insert(below);
  return around;
}

// Programs of the job that were not seen on a GPU, and ran for most of their life while no process of the job was on
// one: steps of its script. What a step starts is part of it.
struct Steps {
  std::size_t count = 0;
  double covered = 0;   // share of the claimed time with any of them
  Nanos longest = 0;    // in the claimed time ...
  Process longest_one;  // ... of this
};

Steps steps_in(const Analysis& a, const Claims& claims) {
  const std::set<SourceId> around = around_the_gpus(a);
  const std::vector<Window> times = times_of(claims);
  const auto overlap = [](const Window& x, const Window& y) {
    return std::max<Nanos>(0, std::min(x.end, y.end) - std::max(x.begin, y.begin));
  };
  struct Step {
    Window life;
    Nanos inside = 0;
  };
  std::map<SourceId, Step> steps;
  for (const RecordedProcess& process : a.processes) {
    Step step{{process.facts.start, process.facts.end.value_or(a.window.end)}};
    if (!process.facts.in_job || around.contains(process.source) || step.life.length() <= 0) continue;
    for (const Window& time : times) step.inside += overlap(time, step.life);
    if (is_most(a, step.inside, step.life.length())) steps.emplace(process.source, step);
  }
  for (std::size_t parent = 0; parent < a.job.children.size(); ++parent)
    if (steps.contains(static_cast<SourceId>(parent)))
      for (const SourceId below : descendants(a.job, static_cast<SourceId>(parent))) steps.erase(below);
  Steps found{.count = steps.size()};
  std::vector<Window> lives;
  for (const RecordedProcess& process : a.processes) {
    const auto step = steps.find(process.source);
    if (step == steps.end()) continue;
    lives.push_back(step->second.life);
    if (step->second.inside <= found.longest) continue;
    found.longest = step->second.inside;
    found.longest_one = process.facts;
  }
  std::sort(lives.begin(), lives.end(), [](const Window& x, const Window& y) { return x.begin < y.begin; });
  Nanos covered = 0, whole = 0;
  for (Window time : times) {
    whole += time.length();
    for (const Window& life : lives) {
      covered += overlap(time, life);
      time.begin = std::max(time.begin, std::min(time.end, life.end));
    }
  }
  if (whole > 0) found.covered = static_cast<double>(covered) / static_cast<double>(whole);
  return found;
}

}  // namespace

Claims before_the_first(const Analysis& a) {
  if (!a.job.has_job || !a.job.has_contexts || a.job.batch.present) return {};
  Nanos first = a.window.end;
  for (const ContextUse& use : a.job.uses)
    if (use.ours) first = std::min(first, std::max(use.begin, use.held_from));
  const std::set<SourceId> around = around_the_gpus(a);
  if (around.empty()) return {};
  const Nanos seen_by = first + a.meta.interval;  // the end of a process is known to a sample only
  const bool steps = std::any_of(a.processes.begin(), a.processes.end(), [&](const RecordedProcess& process) {
    return process.facts.in_job && !around.contains(process.source) && process.facts.start < first &&
           process.facts.end.value_or(seen_by) < seen_by;
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

namespace {

// GPUs that the job uses, while none of its processes is on them.
Claims left_free(const Analysis& a) {
  const Window life = job_lifetime(a);
  return claim(a, [&](std::size_t device, const Slice& slice) {
    return slice.account == Account::kNoTask && a.devices[device].used && slice.end > life.begin &&
           slice.begin < life.end;
  });
}

}  // namespace

Claims free_while_others_work(const Analysis& a) {
  if (!a.job.has_job || !a.job.has_contexts || a.job.batch.present) return {};
  Claims elsewhere;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    Claims there;
    for (const ContextUse& use : a.job.uses)
      if (use.ours && use.device != a.devices[device].source)
        there.push_back({device, use.begin, use.end, Account::kNoTask, -1});
    std::sort(there.begin(), there.end(), [](const auto& x, const auto& y) { return x.begin < y.begin; });
    for (const ClaimedPiece& piece : there)
      if (!elsewhere.empty() && elsewhere.back().device == device && piece.begin <= elsewhere.back().end)
        elsewhere.back().end = std::max(elsewhere.back().end, piece.end);
      else
        elsewhere.push_back(piece);
  }
  return common(left_free(a), elsewhere);
}

namespace {

constexpr const char* kSeeTheScript =
    "see in the script what comes between the steps that use the GPU, then overlap it with them";

// What the job did meanwhile, and what that may be.
void say_what_it_did(const Analysis& a, Finding& finding) {
  const Work work = work_during(a, finding.claims, [](const RecordedProcess& process) { return process.facts.in_job; });
  finding.advice = kSeeTheScript;
  if (!a.job.has_host) {
    finding.candidates = {Cause::kStepsWithoutGpu, Cause::kEnvironmentInstall, Cause::kEpochEndHostWork,
                          Cause::kValidation,      Cause::kSlowStorage,        Cause::kLoggingUpload};
    finding.evidence = {"what it did meanwhile was not recorded"};
  } else if (work.cores >= a.limits[Threshold::kHelpersAtWork]) {
    finding.candidates = {Cause::kStepsWithoutGpu, Cause::kEpochEndHostWork, Cause::kValidation};
    finding.evidence = {fmt::format("meanwhile it used {} cores, {} of them process {} ({})",
                                    human_figure(work.cores, 2), human_figure(work.most, 2), work.busiest.pid,
                                    name_of(work.busiest))};
    finding.advice = fmt::format(
        "run the steps that need no GPU beside the others, or before a GPU is asked for; if these were meant to use "
        "it, check that they can ({})",
        words_for(a.meta, {"torch.cuda.is_available()", "cudaGetDeviceCount()"}));
  } else {
    finding.candidates = {Cause::kStepsWithoutGpu, Cause::kSlowStorage, Cause::kLoggingUpload,
                          Cause::kEpochEndHostWork};
    finding.evidence = {
        "meanwhile it hardly used the CPU: it slept, or waited for a copy, a download or somebody else"};
  }
}

// Where programs that were not seen on a GPU ran for most of it, it is their time.
void name_the_programs(const Analysis& a, Finding& finding) {
  if (!a.job.has_host) return;
  const Steps steps = steps_in(a, finding.claims);
  if (steps.covered < a.limits[Threshold::kMajority]) return;
  finding.cause = Cause::kStepsWithoutGpu;
  finding.candidates.clear();
  const std::string one = fmt::format("process {} ({})", steps.longest_one.pid, name_of(steps.longest_one));
  finding.evidence.insert(
      finding.evidence.begin(),
      steps.count == 1
          ? fmt::format("for {} of it a program of the job ran that was not seen on a GPU: {}",
                        human_percent(steps.covered), one)
          : fmt::format("for {} of it {} programs of the job ran that were not seen on a GPU, the longest for {}: {}",
                        human_percent(steps.covered), steps.count, human_duration(steps.longest), one));
}

}  // namespace

// Between the steps of a script: the job goes on, and none of its processes is on the GPU.
std::vector<Finding> no_process_there(const Analysis& a) {
  if (!a.job.has_job || !a.job.has_contexts || a.job.batch.present) return {};
  Finding finding;
  finding.claims = without(without(left_free(a), before_the_first(a)), free_while_others_work(a));
  if (const Claims installed = common(finding.claims, installing(a)); a.material(length(installed)))
    finding.claims = without(finding.claims, installed);
  if (!a.material(finding.cost())) return {};
  finding.confidence = Confidence::kMedium;
  finding.tiers = a.job.has_host ? "NP" : "N";
  finding.title = "The job went on while none of its processes was on the GPU";
  say_what_it_did(a, finding);
  name_the_programs(a, finding);
  finding.evidence.push_back("the end of a process is known to a sample only");
  finding.told_apart_from = {"an idle GPU of a running step: the driver listed no process of the job there"};
  finding.would_overturn = "nvidia-smi in that time: if it lists a process of the job, this is wrong";
  // Of the time in which a process ended, any part may be time without one.
  std::set<std::pair<std::size_t, Nanos>> begins;
  for (const ClaimedPiece& piece : finding.claims) begins.insert({piece.device, piece.begin});
  const Claims ends = claim(a, [&](std::size_t device, const Slice& slice) {
    return an_end_lies_in(slice) && begins.contains({device, slice.end});
  });
  Claims own = std::exchange(finding.claims, united(finding.claims, ends));
  gains_by_removal(a, finding, "if these steps ran beside the others");
  finding.claims = std::move(own);
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
