// SPDX-License-Identifier: Apache-2.0
// Idle phases that recur, by readings of GPUs alone.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/human.h"
#include "base/median.h"
#include "diagnose/host_waits.h"
#include "diagnose/log_ends.h"
#include "diagnose/readings.h"
#include "diagnose/rules.h"
#include "diagnose/unseen.h"
#include "diagnose/users.h"
#include "diagnose/words.h"

namespace headroom::diagnose {

namespace {

// All that an idle phase can be, the likeliest first.
Causes causes_of_phases() {
  using enum Cause;
  return {kValidation,
          kEpochEndHostWork,
          kHostGraphBuilding,
          kCheckpointSync,
          kLoggingUpload,
          kBurstyInput,
          kStartupLoad,
          kSlowStorage,
          kEpochWorkerRestart,
          kDuplicatePreprocessing,
          kInteractiveHoldingGpu,
          kInputInMainProcess,
          kCpuOversubscribed,
          kPageableCopies,
          kGilContention,
          kPageCacheThrash,
          kSwapThrash,
          kPcieOrNuma};
}

// Whether what is claimed of its idle phases comes at a steady pace, as that of a training loop does; two times tell
// nothing of it.
bool is_regular(const Analysis& a, const Claims& claims, std::size_t device) {
  constexpr std::size_t kEnough = 3;
  for (std::size_t i = 0; i < a.phases.size(); ++i) {
    const Phase& phase = a.phases[i];
    if (phase.device != device || phase.name != "idle" || phase.period) continue;
    const auto times = claimed_times(claims, a, i);
    if (times.size() >= kEnough && !pace_of(a, times)) return false;
  }
  return true;
}

// How long its idle phases last, where that differs from one to the next by a quarter and more, and by more than what
// readings leave open: nine tenths of them lie in between.
std::optional<std::pair<Nanos, Nanos>> uneven_lengths(const Analysis& a, const Claims& claims, std::size_t device) {
  constexpr std::size_t kEnough = 10;
  constexpr double kUneven = 0.25;  // standard deviation over mean
  std::vector<Nanos> lengths;
  for (std::size_t i = 0; i < a.phases.size(); ++i)
    if (a.phases[i].device == device && a.phases[i].name == "idle")
      for (const Window& time : claimed_times(claims, a, i)) lengths.push_back(time.length());
  if (lengths.size() < kEnough) return std::nullopt;
  const auto count = static_cast<double>(lengths.size());
  double sum = 0, squares = 0;
  for (const Nanos length : lengths) sum += seconds(length), squares += seconds(length) * seconds(length);
  const double mean = sum / count;
  if (squares / count - mean * mean < kUneven * kUneven * mean * mean) return std::nullopt;
  std::sort(lengths.begin(), lengths.end());
  const std::size_t edge = lengths.size() / 20;
  const std::pair most(lengths[edge], lengths[lengths.size() - 1 - edge]);
  return most.second - most.first > 2 * a.meta.interval ? std::optional(most) : std::nullopt;
}

// As long as workers take for what they have read ahead, and hardly as long as a validation.
bool each_is_short(const Analysis& a, const Claims& claims, std::size_t device) {
  constexpr Nanos kShort = 30 * kSecond;
  std::vector<double> lengths;
  for (std::size_t i = 0; i < a.phases.size(); ++i)
    if (a.phases[i].device == device)
      for (const Window& time : claimed_times(claims, a, i)) lengths.push_back(static_cast<double>(time.length()));
  return !lengths.empty() && median(std::move(lengths)) < static_cast<double>(kShort);
}

// Idle time of a device for which nothing tells a reason, while a job works.
Nanos open_idle(const Analysis& a, std::size_t device) {
  Claims idle;
  claim_on(
      a, device,
      [&](const Slice& slice) { return slice.account == Account::kUnexplained && during_work(a, device, slice); },
      idle);
  return length(idle);
}

// What of all idle time of the device these phases are, and how sure that is.
void say_how_much(const Analysis& a, std::size_t device, Nanos all, Finding& finding) {
  append(finding.evidence, recurrences(a, finding.claims));
  append(finding.evidence, common_words(a));
  const Nanos idle = finding.cost(), told = std::min(idle, time_in_recurrences(a, finding.claims));
  finding.evidence.push_back(
      fmt::format("{} of its idle time falls into {}, {} into the rest", human_duration(told > 0 ? told : idle),
                  told > 0 ? "these phases" : "phases that recur", human_duration(all - (told > 0 ? told : idle))));
  say_error(static_cast<double>(a.gpus[device].busy_error) / static_cast<double>(a.ledger.span()), finding.evidence);
  if (still_computing(a)) finding.told_apart_from.push_back("a hang: kernels come back after every idle phase");
}

// A loader that is too slow looks so, too: the GPU waits after as many batches as its workers have made ahead.
void may_be_the_loader(const Analysis& a, std::size_t device, Nanos all, Finding& finding) {
  const auto span = static_cast<double>(a.ledger.span());
  const Nanos idle = finding.cost();
  if (static_cast<double>(idle) > a.limits[Threshold::kMajority] * span)
    finding.candidates.insert(finding.candidates.begin(), Cause::kInputTooFewWorkers);
  else if (!each_is_short(a, finding.claims, device) &&
           static_cast<double>(all - idle) < a.limits[Threshold::kBusiestPhaseRest] * span)
    finding.told_apart_from.push_back("a loader too slow for every step: in its busiest phase the GPU hardly waits");
  else
    finding.candidates.push_back(Cause::kInputTooFewWorkers);
}

// Phases that differ in length wait for something rather than do the same each time.
void follow_the_lengths(const Analysis& a, std::size_t device, Finding& finding) {
  const auto lengths = uneven_lengths(a, finding.claims, device);
  if (!lengths) return;
  const auto waits = [](Cause cause) {
    return cause == Cause::kInputTooFewWorkers || cause == Cause::kBurstyInput || cause == Cause::kSlowStorage;
  };
  const auto takes_the_same = [](Cause cause) {
    return cause == Cause::kValidation || cause == Cause::kEpochEndHostWork || cause == Cause::kCheckpointSync;
  };
  std::stable_partition(finding.candidates.begin(), finding.candidates.end(), waits);
  std::stable_partition(finding.candidates.begin(), finding.candidates.end(), std::not_fn(takes_the_same));
  finding.evidence.push_back(
      fmt::format("nine of ten of these phases last from {} to {}: as a rule validation and checkpoints take much "
                  "the same time "
                  "each time",
                  human_duration(lengths->first), human_duration(lengths->second)));
}

// For one job of all GPUs, and where that may not be, for the one that has this device.
void bound_phases(const Analysis& a, std::size_t device, Finding& finding) {
  constexpr const char* kFeeding = "faster feeding cannot shorten the phase in which kernels run";
  Claims open = gains_of_all_unseen(a, finding,
                                    fmt::format("if this and all other idle time that nothing explains vanished, and "
                                                "the kernels stay as they are; {}",
                                                kFeeding));
  Finding alone = finding;
  gains_by_removal(a, alone,
                   fmt::format("if all of this idle time vanished and the kernels stay as they are; {}{}", kFeeding,
                               until_words(a)));
  // Where the rest makes no difference to the figure that is read it is not worth a word.
  if (finding.gain && alone.gain && human_factor(alone.gain->high) == human_factor(finding.gain->high)) {
    finding.gain->condition = alone.gain->condition;
    finding.bound = alone.bound;
    open = finding.claims;
  }
  if (!finding.gain) return;
  auto jobs = jobs_by_users(a);
  std::erase_if(jobs, [&](const auto& job) { return std::find(job.begin(), job.end(), device) == job.end(); });
  const auto apart = with_more_room(a);
  if (!jobs.empty())
    say_by_job(a, jobs, open, finding);
  else if (std::find(apart.begin(), apart.end(), device) != apart.end())
    say_both_ways(a, {device}, open, finding);
}

Finding phases_of(const Analysis& a, std::size_t device, Claims claims) {
  constexpr double kOfEpochs = 0.2;  // epochs have their ends; who idles for longer than that waits for something
  Finding finding;
  finding.claims = std::move(claims);
  finding.candidates = causes_of_phases();
  if (a.devices.size() > 1) finding.candidates.push_back(Cause::kStraggler);
  exclude_copies(a, finding);
  const Nanos all = open_idle(a, device);
  const bool long_waits = static_cast<double>(all) > kOfEpochs * static_cast<double>(a.ledger.span());
  if (long_waits && each_is_short(a, finding.claims, device)) {
    std::erase(finding.candidates, Cause::kBurstyInput);
    finding.candidates.insert(finding.candidates.begin() + 1, Cause::kBurstyInput);
  }
  const bool regular = is_regular(a, finding.claims, device);
  finding.title =
      fmt::format("{} idles {}", a.device_name(device),
                  !regular                                 ? "again and again, at no regular times"
                  : long_waits || !common_words(a).empty() ? "in phases that recur"
                                                           : "in phases that recur: a pattern, not a fault");
  finding.tiers = "N";
  say_how_much(a, device, all, finding);
  may_be_the_loader(a, device, all, finding);
  follow_the_lengths(a, device, finding);
  if (!regular) {  // as people type and requests come
    put_first(finding.candidates, Cause::kInteractiveHoldingGpu);
    if (const std::string held = memory_words(a, device); !held.empty()) finding.evidence.push_back(held);
  }
  suspect_copies(a, finding);
  finding.would_overturn = "marks or output lines that show training steps inside the idle phases";
  finding.advice = "name the phases (marks, output lines), then shorten or overlap the longest";
  if (finding.candidates.front() == Cause::kInteractiveHoldingGpu)
    finding.advice =
        "if a server or a session waits there for requests, let others share the GPU; else " + finding.advice;
  bound_phases(a, device, finding);
  return finding;
}

}  // namespace

std::vector<Finding> idle_phases(const Analysis& a) {
  std::vector<Finding> findings;
  if (!readings_alone(a) || hardly_used(a)) return findings;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    Claims claims;
    claim_on(
        a, device, [&](const Slice& slice) { return in_a_phase(a, device, slice); }, claims);
    if (a.material(length(claims))) findings.push_back(phases_of(a, device, std::move(claims)));
  }
  return findings;
}

}  // namespace headroom::diagnose
