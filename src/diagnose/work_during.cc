// SPDX-License-Identifier: Apache-2.0
#include "diagnose/work_during.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/human.h"
#include "diagnose/host_waits.h"
#include "diagnose/idle_parts.h"
#include "diagnose/named_code.h"
#include "diagnose/rules.h"

namespace headroom::diagnose {

Work work_during(const Analysis& a, const Claims& claims, const std::function<bool(const RecordedProcess&)>& wanted) {
  Work work;
  std::vector<double> each;
  const std::vector<Window> times = times_of(claims);
  double time = 1e-9;
  for (const Window& window : times) time += seconds(window.length());
  for (const RecordedProcess& process : a.processes) {
    if (!wanted(process)) continue;
    double used = 0;  // seconds
    auto next = times.begin();
    for (const Activity& activity : a.job.did[static_cast<std::size_t>(process.source)]) {
      while (next != times.end() && next->end <= activity.begin) ++next;
      for (auto at = next; at != times.end() && at->begin < activity.end; ++at)
        used += activity.cpu * seconds(std::min(activity.end, at->end) - std::max(activity.begin, at->begin));
    }
    work.cores += used / time;
    each.push_back(used / time);
    if (used / time <= work.most) continue;
    work.most = used / time;
    work.busiest = process.facts;
  }
  constexpr double kPart = 0.1;
  work.workers = static_cast<std::size_t>(
      std::count_if(each.begin(), each.end(), [&](double used) { return used > 0 && used >= kPart * work.cores; }));
  return work;
}

namespace {

// Of the time in which a process was watched, the share that lies in these times.
double share_of_life_in(const Analysis& a, const Claims& claims, SourceId process) {
  const std::vector<Window> times = times_of(claims);
  Nanos life = 0, then = 0;
  auto next = times.begin();
  for (const Activity& activity : a.job.did[static_cast<std::size_t>(process)]) {
    life += activity.end - activity.begin;
    while (next != times.end() && next->end <= activity.begin) ++next;
    for (auto at = next; at != times.end() && at->begin < activity.end; ++at)
      then += std::min(activity.end, at->end) - std::max(activity.begin, at->begin);
  }
  return life > 0 ? static_cast<double>(then) / static_cast<double>(life) : 0;
}

std::optional<Work> work_of_children(const Analysis& a, const Claims& claims,
                                     const std::function<bool(SourceId)>& wanted) {
  std::set<SourceId> holders, below;
  for (const ContextUse& use : a.job.uses)
    if (use.ours && use.process && std::any_of(claims.begin(), claims.end(), [&](const ClaimedPiece& piece) {
          return a.devices[piece.device].source == use.device && piece.begin < use.end && use.begin < piece.end;
        }))
      holders.insert(*use.process);
  for (const SourceId holder : holders)
    for (const SourceId id : descendants(a.job, holder))
      if (!holders.contains(id)) below.insert(id);
  const Work work = work_during(a, claims, [&](const RecordedProcess& process) {
    return below.contains(process.source) && wanted(process.source);
  });
  if (work.cores < a.limits[Threshold::kHelpersAtWork]) return std::nullopt;
  return work;
}

// Of those at work the ones whose end may be waited for: a loader's worker lives on between the waits.
std::optional<Work> children_waited_for(const Analysis& a, const Claims& claims) {
  constexpr double kMostly = 0.5;
  return work_of_children(a, claims, [&](SourceId process) { return share_of_life_in(a, claims, process) >= kMostly; });
}

}  // namespace

std::optional<Work> children_at_work(const Analysis& a, const Claims& claims) {
  return work_of_children(a, claims, [](SourceId) { return true; });
}

bool waits_for_child(const Analysis& a, const HostSummary& s, const Claims& claims) {
  return mostly_at(a, claims, a.code.child_waits) ||
         s.waiting_in({WaitChannel::kChild}) >= a.limits[Threshold::kMajority];
}

// "At least": what a process used after the last look at it is nobody's.
std::string child_sentence(const Work& child) {
  if (child.workers < 2)
    return fmt::format("process {} ({}) used at least {} cores in this time", child.busiest.pid, name_of(child.busiest),
                       human_figure(child.most, 2));
  return fmt::format("{} processes that it started used at least {} cores in this time, such as process {} ({})",
                     child.workers, human_figure(child.cores, 2), child.busiest.pid, name_of(child.busiest));
}

namespace {

// A new shape, or a new kernel, is compiled while the training goes on, as others were before it began.
void say_that_it_compiles(const std::optional<Work>& child, Finding& finding) {
  finding.cause = Cause::kCompileWarmup;
  finding.candidates.clear();
  finding.title = "The GPU waits while the training process waits for a compiler that it started";
  if (child) finding.evidence.insert(finding.evidence.begin(), child_sentence(*child));
  finding.advice = "keep what is compiled (a cache on disk), and the same shapes: pad or bucket them";
  finding.would_overturn = "the times of steps of one shape: if later ones take as long as the first, this is wrong";
}

}  // namespace

void name_the_child(const Analysis& a, const HostSummary& s, Finding& finding) {
  if (!waits_for_child(a, s, finding.claims)) return;
  if (2 * length(compiling(a, finding.claims)) >= finding.cost())
    return say_that_it_compiles(children_waited_for(a, finding.claims), finding);
  const bool pauses = 2 * length(in_pauses(a, finding.claims)) >= finding.cost();
  Causes theirs =
      pauses ? Causes{Cause::kValidation, Cause::kEpochEndHostWork, Cause::kInputInMainProcess, Cause::kCheckpointSync}
             : Causes{Cause::kInputInMainProcess, Cause::kHostGraphBuilding, Cause::kLoggingUpload};
  const auto child = children_waited_for(a, finding.claims);
  if (!child) {  // which waits itself, as for a network, or was not looked at
    if (finding.cause) return;
    finding.title = "The GPU waits while the training process waits for a process that it started";
    // Those that live for less than a reading are not looked at, but the kernel counts what they used.
    const bool at_work = s.helper_cpu + s.unseen_cpu >= a.limits[Threshold::kHelpersAtWork];
    if (pauses || !at_work) add(theirs, finding.candidates);
    finding.candidates = std::move(theirs);
    finding.advice =
        "see what that process does or waits for; let it run beside the training instead of waiting for it";
    return;
  }
  finding.cause.reset();
  finding.candidates = std::move(theirs);
  const bool one = child->workers < 2;
  finding.title = one ? fmt::format("The GPU waits while the training process waits for process {}, which it started",
                                    child->busiest.pid)
                      : std::string("The GPU waits while the training process waits for programs that it started");
  finding.evidence.insert(finding.evidence.begin(), child_sentence(*child));
  finding.advice = fmt::format("let {} run beside the training, on what was saved for {}, instead of waiting for {}",
                               one ? "that process" : "these programs", one ? "it" : "them", one ? "it" : "them");
  finding.would_overturn = kOtherFunctions;
}

std::string name_of(const Process& process) {
  constexpr std::size_t kLongest = 60;
  std::string text = process.cmdline.empty() ? process.comm : process.cmdline;
  if (const std::size_t line = text.find('\n'); line != std::string::npos && line < kLongest)  // a script, given whole
    return text.substr(0, line) + " ...";
  if (text.size() <= kLongest) return text;
  const std::size_t space = text.rfind(' ', kLongest);
  text.resize(space == std::string::npos ? kLongest : space);
  return text + " ...";
}

void may_sleep_itself(const Analysis& a, const RecordedProcess& other, Finding& finding) {
  constexpr double kHardly = 4e3;  // bytes per second: a page now and then
  const std::vector<SourceId> below = descendants(a.job, other.source);
  const auto is_of_it = [&](const RecordedProcess& process) {
    return process.source == other.source || (!a.job.holds[static_cast<std::size_t>(process.source)] &&
                                              std::find(below.begin(), below.end(), process.source) != below.end());
  };
  const Work work = work_during(a, finding.claims, is_of_it);
  if (work.cores >= a.limits[Threshold::kHelpersAtWork] || a.job.did[static_cast<std::size_t>(other.source)].empty())
    return;
  bool beyond = false;  // it was seen at a connection, a disk or a pipe
  for (const RecordedProcess& process : a.processes) {
    if (!is_of_it(process)) continue;
    for (const Activity& did : a.job.did[static_cast<std::size_t>(process.source)])
      beyond |= did.wait != WaitChannel::kSleep && did.wait != WaitChannel::kChild &&
                did.wait != WaitChannel::kTerminal && did.wait != WaitChannel::kRunning;
    for (const Activity& did : a.job.did[static_cast<std::size_t>(process.source)])
      beyond |= did.read_bytes_per_second.value_or(0) >= kHardly;
  }
  finding.evidence.push_back(fmt::format("meanwhile that process{} hardly used the CPU ({} cores): it waits itself{}",
                                         below.empty() ? "" : " and what it started", human_figure(work.cores, 2),
                                         beyond ? "" : ", on a timer, a program or a terminal"));
  const auto cannot_be = [&](Cause cause) {
    if (finding.candidates.size() > 1) std::erase(finding.candidates, cause);
  };
  cannot_be(Cause::kInputTooFewWorkers);
  cannot_be(Cause::kInputInMainProcess);
  if (beyond) return;
  cannot_be(Cause::kSlowStorage);
  add(finding.candidates, {Cause::kBurstyInput});
}

}  // namespace headroom::diagnose
