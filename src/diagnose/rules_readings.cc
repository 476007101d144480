// SPDX-License-Identifier: Apache-2.0
// Rules for readings of GPUs alone: no process of a job is known, so why a GPU was idle is a set of all that can be.
#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "diagnose/host_waits.h"
#include "diagnose/idle_parts.h"
#include "diagnose/rules.h"
#include "diagnose/unseen.h"
#include "diagnose/words.h"

namespace headroom::diagnose {

namespace {

// Kernels in the last part of the window, and no device without any: nothing hangs then.
bool still_computing(const Analysis& a) {
  if (std::any_of(a.quiet_ends.begin(), a.quiet_ends.end(), [](const auto& end) { return end.has_value(); }))
    return false;
  return std::any_of(a.devices.begin(), a.devices.end(), [&](const DeviceTime& device) {
    for (auto slice = device.slices.rbegin(); slice != device.slices.rend() && slice->end > a.late_from; ++slice)
      if (is_busy(slice->account)) return true;
    return false;
  });
}

bool at_a_quiet_end(const Analysis& a, std::size_t device, const Slice& slice) {
  return a.quiet_ends[device] && slice.begin >= a.quiet_ends[device]->from;
}

bool in_a_gap(const Analysis& a, std::size_t device, const Slice& slice) {
  return std::any_of(a.job_gaps[device].begin(), a.job_gaps[device].end(), [&](const JobGap& pause) {
    return slice.begin >= pause.time.begin && slice.end <= pause.time.end;
  });
}

// Not between two jobs, and not after the last.
bool during_work(const Analysis& a, std::size_t device, const Slice& slice) {
  return !at_a_quiet_end(a, device, slice) && !in_a_gap(a, device, slice);
}

Claims between_jobs_of(const Analysis& a) {
  return claim(a, [&](std::size_t device, const Slice& slice) {
    return slice.account == Account::kUnexplained && in_a_gap(a, device, slice);
  });
}

bool in_a_phase(const Analysis& a, std::size_t device, const Slice& slice) {
  return slice.account == Account::kUnexplained && recurs(a, slice.phase) && !a.idle_peer[device] &&
         during_work(a, device, slice);
}

std::string batch_sentence(double by_utilisation) {
  return fmt::format("a batch k times larger gains at most min(k, {}), if the batch is the cause",
                     human_factor(by_utilisation));
}

std::string memory_words(const Analysis& a, std::size_t device) {
  if (a.meta.origin == "run" && too_short_to_list(a)) return "";  // read before it began and after it ended
  const MetricStats* memory = a.stats_of(device, Metric::kMemoryUsed);
  const auto total = a.devices[device].device.memory_total_bytes;
  if (!memory || memory->samples == 0 || !total) return "";
  return fmt::format("{}: {} of {} at most", a.device_name(device), human_bytes(static_cast<std::int64_t>(memory->max)),
                     human_bytes(*total));
}

// Where nothing tells one cause from another, all idle time that nothing explains may be one's: what several findings
// say of it, what a process that is not looked at did after its last kernel, be it the last pause of many, and what no
// reading covers.
// Returns all that time.
Claims gains_of_all_unseen(const Analysis& a, Finding& finding, std::string condition) {
  Claims all = claim(a, [&](std::size_t device, const Slice& slice) {
    const bool open = slice.account == Account::kUnexplained || slice.account == Account::kTeardown ||
                      (slice.account == Account::kUnobserved && !a.unreported[device]);
    return open && !a.idle_peer[device] && during_work(a, device, slice);
  });
  Nanos unread = 0;
  for (const ClaimedPiece& piece : all)
    if (piece.account == Account::kUnobserved) unread += piece.end - piece.begin;
  if (a.material(unread))
    condition += fmt::format(", the {} that no reading covers taken as idle, too", human_duration(unread));
  std::swap(finding.claims, all);
  gains_by_removal(a, finding, condition + until_words(a));
  std::swap(finding.claims, all);
  return all;
}

// Whether all of it, on each device, is one stretch of readings that say 0: what happens between the kernels of a step,
// or what a step is made of, has no part in that.
bool one_stretch(const Analysis& a, const Claims& claims) {
  const double least = a.limits[Threshold::kOneStretch] * static_cast<double>(a.meta.interval);
  for (std::size_t i = 0; i < claims.size(); ++i)
    if ((i > 0 && claims[i].device == claims[i - 1].device) ||
        static_cast<double>(claims[i].end - claims[i].begin) < least)
      return false;
  return true;
}

}  // namespace

namespace {

// "70 % to 92 %" of the time; "92 %" where they are alike.
std::string busy_shares(const Analysis& a, const std::vector<std::size_t>& devices) {
  constexpr double kAlike = 0.05, kPoint = 0.01;
  double least = 1, most = 0;
  for (const std::size_t device : devices) {
    const double share = static_cast<double>(a.ledger.busy(device)) / static_cast<double>(a.ledger.span());
    least = std::min(least, share), most = std::max(most, share);
  }
  if (most - least <= std::max(kPoint, kAlike * most)) return human_percent((least + most) / 2);
  return fmt::format("{} to {}", human_percent(least), human_percent(most));
}

// Those that were busy alike, the busiest first: GPUs of one job are.
std::vector<std::vector<std::size_t>> alike_groups(const Analysis& a, std::vector<std::size_t> devices) {
  constexpr double kAlike = 1.5;
  const auto busy = [&](std::size_t device) { return static_cast<double>(a.ledger.busy(device)); };
  std::stable_sort(devices.begin(), devices.end(), [&](std::size_t x, std::size_t y) { return busy(x) > busy(y); });
  std::vector<std::vector<std::size_t>> groups;
  for (const std::size_t device : devices) {
    if (groups.empty() || kAlike * busy(device) < busy(groups.back().front())) groups.emplace_back();
    groups.back().push_back(device);
  }
  return groups;
}

// What jobs that have some of the GPUs to themselves gain at most, by what is `open` there, beside what one job of all
// does.
void say_both_ways(const Analysis& a, const std::vector<std::size_t>& apart, const Claims& open, Finding& finding) {
  std::string own;
  for (std::vector<std::size_t>& devices : alike_groups(a, apart)) {
    const std::string factor = human_factor(removal_for(a, open, devices));
    std::sort(devices.begin(), devices.end());
    const bool one = devices.size() == 1;
    own += own.empty() ? fmt::format("if {} {} a job of {} own, at most {} for that", gpu_names(a, devices),
                                     one ? "has" : "have", one ? "its" : "their", factor)
                       : fmt::format(", {} for one on {}", factor, gpu_names(a, devices));
  }
  const std::string of_all = human_factor(finding.gain->high);
  finding.bound = fmt::format("{}; if one job uses all, at most {}, {}", own, of_all, finding.gain->condition);
  finding.gain->condition = fmt::format("if one job uses all, {}; {}", finding.gain->condition, own);
}

// How busy `apart` were, and the others.
std::string shares_apart(const Analysis& a, const std::vector<std::size_t>& apart) {
  constexpr Nanos kOfTwoJobs = 2;
  std::vector<std::size_t> others;
  Nanos most = 0, most_apart = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const bool is_apart = std::find(apart.begin(), apart.end(), device) != apart.end();
    if (!is_apart && !a.idle_peer[device]) others.push_back(device);
    Nanos& busiest = is_apart ? most_apart : most;
    busiest = std::max(busiest, a.ledger.busy(device));
  }
  return fmt::format("{} {} busy for {} of the time, {} for {}{}", gpu_names(a, apart),
                     apart.size() == 1 ? "was" : "were", busy_shares(a, apart), gpu_names(a, others),
                     busy_shares(a, others), kOfTwoJobs * most_apart < most ? ": they differ, as two jobs do" : "");
}

std::string larger_batch(const Analysis& a, std::size_t device) {
  return "; that says " +
         larger_batch_words(a.stats_of(device, Metric::kMemoryUsed)->max,
                            static_cast<double>(*a.devices[device].device.memory_total_bytes)) +
         ", not that it is faster";
}

// Whether its idle phases come at a steady pace, as those of a training loop do; two tell nothing of it.
bool is_regular(const Analysis& a, std::size_t device) {
  constexpr std::int64_t kEnough = 3;
  return std::none_of(a.phases.begin(), a.phases.end(), [&](const Phase& phase) {
    return phase.device == device && phase.name == "idle" && phase.count >= kEnough && !phase.period;
  });
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

// Whether more than half of its memory was never in use.
bool mostly_free(const Analysis& a, std::size_t device) {
  const auto total = a.devices[device].device.memory_total_bytes;
  return total && a.stats_of(device, Metric::kMemoryUsed)->max <
                      (1 - a.limits[Threshold::kMajority]) * static_cast<double>(*total);
}

// Bytes: with less in use no program has a context of CUDA there, whose own are 60 MiB and more; the driver takes some.
constexpr double kLeastContext = 32.0 * (1 << 20);

// Memory that grew in a log with hardly a kernel and is in use at its end: what a job does that starts.
struct Growth {
  std::string words;    // "": none
  bool lately = false;  // in the second half of the log: it is no start that stands still
};

Growth growth(const Analysis& a, std::size_t device) {
  constexpr double kStill = 0.9;  // of the most that was in use
  const MetricStats* memory = a.stats_of(device, Metric::kMemoryUsed);
  const auto& end = a.memory_ends[device];
  if (!memory || memory->samples == 0 || !end || memory->max < kLeastContext || end->used < kStill * memory->max ||
      end->used < 2 * memory->min)
    return {};
  const auto mebibytes = [](double bytes) { return static_cast<std::int64_t>(bytes) >> 20; };
  return {fmt::format("{}: memory in use grew from {} MiB to {} MiB, as at the start of a job", a.device_name(device),
                      mebibytes(memory->min), mebibytes(end->used)),
          memory->p50 < kStill * end->used};
}

// A log of which nothing is known but that a job started: memory grew to its end, and hardly a kernel ran.
bool only_starts(const Analysis& a) {
  if (!readings_alone(a) || a.job.has_contexts ||
      static_cast<double>(a.ledger.busy()) > a.limits[Threshold::kQuietUtil] * static_cast<double>(a.ledger.budget()))
    return false;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    if (growth(a, device).lately) return true;
  return false;
}

}  // namespace

std::vector<Finding> idle_inseparable(const Analysis& a) {
  if (!readings_alone(a) || a.ledger.busy() == 0 || only_starts(a)) return {};
  Finding finding;
  finding.claims = claim(a, [&](std::size_t device, const Slice& slice) {
    return slice.account == Account::kUnexplained && !recurs(a, slice.phase) && !a.idle_peer[device] &&
           during_work(a, device, slice);
  });
  if (const Claims gaps = between_jobs_of(a); !a.material(length(gaps)))
    finding.claims = united(std::move(finding.claims), gaps);
  // What lies in phases has findings of its own, by device, where it is enough for one.
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const Claims pauses =
        claim(a, [&](std::size_t of, const Slice& slice) { return of == device && in_a_phase(a, device, slice); });
    if (!a.material(length(pauses))) finding.claims = united(std::move(finding.claims), pauses);
  }
  if (!a.material(finding.cost())) return {};
  Nanos busy = 0, idle = 0, error = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    if (a.idle_peer[device]) continue;
    busy += a.ledger.busy(device);
    idle += a.ledger.total(Account::kUnexplained, device);
    error += a.busy_error[device];
  }
  // The likeliest first. Less evidence leaves more causes: all that an idle GPU can wait for.
  finding.candidates = {Cause::kInputTooFewWorkers,
                        Cause::kHostGraphBuilding,
                        Cause::kBatchTooSmall,
                        Cause::kLaunchBound,
                        Cause::kInputInMainProcess,
                        Cause::kSlowStorage,
                        Cause::kCpuOversubscribed,
                        Cause::kSyncPoints,
                        Cause::kBurstyInput,
                        Cause::kValidation,
                        Cause::kCheckpointSync,
                        Cause::kLoggingUpload,
                        Cause::kEpochEndHostWork,
                        Cause::kGilContention,
                        Cause::kStartupLoad,
                        Cause::kPageableCopies,
                        Cause::kEpochWorkerRestart,
                        Cause::kDuplicatePreprocessing,
                        Cause::kInteractiveHoldingGpu,
                        Cause::kPageCacheThrash,
                        Cause::kSwapThrash,
                        Cause::kPcieOrNuma,
                        Cause::kAllocatorChurn};
  if (a.devices.size() > 1)
    for (const Cause cause : {Cause::kStraggler, Cause::kOneProcessImbalance, Cause::kExposedCommunication})
      finding.candidates.push_back(cause);
  const bool between_steps = !one_stretch(a, finding.claims);
  if (!between_steps)
    std::erase_if(finding.candidates, [](Cause cause) {
      return cause == Cause::kBatchTooSmall || cause == Cause::kLaunchBound || cause == Cause::kAllocatorChurn;
    });
  exclude_copies(a, finding);
  finding.evidence = link_sentences(a, finding.claims);
  suspect_copies(a, finding);
  finding.title = "Why the GPU was idle cannot be told from this recording alone";
  finding.confidence = Confidence::kMedium;
  finding.tiers = "N";
  const auto observed = static_cast<double>(std::max<Nanos>(1, busy + idle));
  std::string resident = fmt::format("a kernel was resident for {} of the observed time",
                                     human_percent(static_cast<double>(busy) / observed));
  if (a.material(error))
    resident += fmt::format(", give or take {}: a reading speaks for a part of its time only",
                            human_percent(static_cast<double>(error) / observed));
  finding.evidence.push_back(std::move(resident));
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    if (const auto words = memory_words(a, device); between_steps && !words.empty() && !a.idle_peer[device])
      finding.evidence.push_back(words + (mostly_free(a, device) ? larger_batch(a, device) : ""));
  if (still_computing(a))
    finding.told_apart_from.push_back(fmt::format("a hang: kernels ran in the last {} of the time",
                                                  human_percent(a.limits[Threshold::kProgressTail])));
  finding.would_overturn = "process CPU times (headroom run) that show the job waiting for something else";
  finding.advice = "record the next run with `headroom run -- CMD`; change nothing before";
  if (a.meta.origin == "run" && a.job.owners_unknown && !too_short_to_list(a)) {
    finding.would_overturn = "a process list that names the job";
    finding.advice = "let the driver name the job's processes first: headroom doctor says how";
  } else if (a.meta.origin == "run") {
    finding.would_overturn = "two looks at its processes that show the job waiting for something else";
    finding.advice = fmt::format("this run was too short for two looks at its processes: {}a longer run",
                                 looks_often(a) ? "" : "`headroom run -i 100ms -- CMD`, or ");
  }
  const Claims all = gains_of_all_unseen(a, finding, "at equal GPU work");
  if (!finding.gain) return only(std::move(finding));
  if (const auto apart = with_more_room(a); !apart.empty()) {
    finding.evidence.insert(finding.evidence.begin(), shares_apart(a, apart));
    say_both_ways(a, apart, all, finding);
    return only(std::move(finding));
  }
  finding.bound = fmt::format("whatever the cause, at most {} {}{}", human_factor(finding.gain->high),
                              finding.gain->condition, between_steps ? "; " + batch_sentence(finding.gain->high) : "");
  finding.gain->condition = "whatever the cause, " + finding.gain->condition;
  return only(std::move(finding));
}

std::vector<Finding> idle_phases(const Analysis& a) {
  std::vector<Finding> findings;
  if (!readings_alone(a)) return findings;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    Finding finding;
    claim_on(
        a, device, [&](const Slice& slice) { return in_a_phase(a, device, slice); }, finding.claims);
    const Nanos idle = finding.cost();
    if (!a.material(idle)) continue;
    finding.candidates = {Cause::kValidation,
                          Cause::kEpochEndHostWork,
                          Cause::kHostGraphBuilding,
                          Cause::kCheckpointSync,
                          Cause::kLoggingUpload,
                          Cause::kBurstyInput,
                          Cause::kStartupLoad,
                          Cause::kSlowStorage,
                          Cause::kEpochWorkerRestart,
                          Cause::kDuplicatePreprocessing,
                          Cause::kInteractiveHoldingGpu,
                          Cause::kInputInMainProcess,
                          Cause::kCpuOversubscribed,
                          Cause::kPageableCopies,
                          Cause::kGilContention,
                          Cause::kPageCacheThrash,
                          Cause::kSwapThrash,
                          Cause::kPcieOrNuma};
    if (a.devices.size() > 1) finding.candidates.push_back(Cause::kStraggler);
    exclude_copies(a, finding);
    // Epochs have their ends; who idles for longer than that waits for something.
    constexpr double kOfEpochs = 0.2;
    const Nanos all = a.ledger.total(Account::kUnexplained, device);
    const bool long_waits = static_cast<double>(all) > kOfEpochs * static_cast<double>(a.ledger.span());
    finding.title = fmt::format("{} idles in phases that recur{}", a.device_name(device),
                                long_waits ? "" : ": a pattern, not a fault");
    finding.tiers = "N";
    append(finding.evidence, recurrences(a, finding.claims));
    const Nanos rest = all - idle;
    finding.evidence.push_back(fmt::format("{} of its idle time falls into these phases, {} into the rest",
                                           human_duration(idle), human_duration(rest)));
    if (still_computing(a)) finding.told_apart_from.push_back("a hang: kernels come back after every idle phase");
    // A loader that is too slow looks so, too: the GPU waits after as many batches as its workers have made ahead.
    if (static_cast<double>(idle) > a.limits[Threshold::kMajority] * static_cast<double>(a.ledger.span()))
      finding.candidates.insert(finding.candidates.begin(), Cause::kInputTooFewWorkers);
    else if (static_cast<double>(rest) < a.limits[Threshold::kBusiestPhaseRest] * static_cast<double>(a.ledger.span()))
      finding.told_apart_from.push_back("a loader too slow for every step: in its busiest phase the GPU hardly waits");
    else
      finding.candidates.push_back(Cause::kInputTooFewWorkers);
    if (const auto uneven = uneven_lengths(a, finding.claims, device)) {
      const auto takes_the_same = [](Cause cause) {
        return cause == Cause::kValidation || cause == Cause::kEpochEndHostWork || cause == Cause::kCheckpointSync;
      };
      std::stable_partition(finding.candidates.begin(), finding.candidates.end(), [](Cause cause) {
        return cause == Cause::kInputTooFewWorkers || cause == Cause::kBurstyInput || cause == Cause::kSlowStorage;
      });
      std::stable_partition(finding.candidates.begin(), finding.candidates.end(),
                            [&](Cause cause) { return !takes_the_same(cause); });
      finding.evidence.push_back(
          fmt::format("nine of ten of these phases last from {} to {}: as a rule validation and checkpoints take much "
                      "the same time "
                      "each time",
                      human_duration(uneven->first), human_duration(uneven->second)));
    }
    if (!is_regular(a, device)) {  // as people type and requests come
      std::erase(finding.candidates, Cause::kInteractiveHoldingGpu);
      finding.candidates.insert(finding.candidates.begin(), Cause::kInteractiveHoldingGpu);
    }
    suspect_copies(a, finding);
    finding.would_overturn = "marks or output lines that show training steps inside the idle phases";
    finding.advice = "name the phases (marks, output lines), then shorten or overlap the longest";
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
    const auto apart = finding.gain ? with_more_room(a) : std::vector<std::size_t>{};
    if (std::find(apart.begin(), apart.end(), device) != apart.end()) say_both_ways(a, {device}, open, finding);
    findings.push_back(std::move(finding));
  }
  return findings;
}

// The share of the time after its job that a device was busy.
double busy_from(const Analysis& a, std::size_t device) {
  Nanos busy = 0, all = 0;
  for (const Slice& slice : a.devices[device].slices)
    if (at_a_quiet_end(a, device, slice) && slice.account != Account::kUnobserved) {
      all += slice.end - slice.begin;
      if (is_busy(slice.account)) busy += slice.end - slice.begin;
    }
  return static_cast<double>(busy) / static_cast<double>(std::max<Nanos>(1, all));
}

// A log that ends without kernels: the job had ended, holds the GPU, or hangs.
std::vector<Finding> quiet_end(const Analysis& a) {
  if (!readings_alone(a)) return {};
  Finding finding;
  bool freed = false, held = false, few = false, nobody = true;
  double most_busy = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const auto& end = a.quiet_ends[device];
    if (!end) continue;
    claim_on(
        a, device,
        [&](const Slice& slice) { return slice.account == Account::kUnexplained && at_a_quiet_end(a, device, slice); },
        finding.claims);
    few = few || end->few_kernels;
    most_busy = std::max(most_busy, busy_from(a, device));
    finding.evidence.push_back(fmt::format(
        "{}: {} from {} on, for {} to the end", a.device_name(device),
        end->few_kernels ? fmt::format("busy for {} of the time", human_percent(busy_from(a, device))) : "no kernel",
        a.when(end->from), human_duration(a.window.end - end->from)));
    nobody = nobody && end->memory_after && *end->memory_after < kLeastContext;
    if (!end->memory_before || !end->memory_after) continue;
    const bool gave_back = *end->memory_after <= a.limits[Threshold::kMemoryFreed] * *end->memory_before;
    (gave_back ? freed : held) = true;
    finding.evidence.push_back(fmt::format("{}: {} of its memory in use {}, {} at the end", a.device_name(device),
                                           human_bytes(static_cast<std::int64_t>(*end->memory_before)),
                                           end->few_kernels ? "before" : "at the last kernel",
                                           human_bytes(static_cast<std::int64_t>(*end->memory_after))));
  }
  if (!a.material(finding.cost())) return {};
  finding.tiers = "N";
  finding.confidence = Confidence::kMedium;
  constexpr double kHardly = 0.05;  // of the time
  const std::string none = !few                   ? "No kernel was seen any more"
                           : most_busy <= kHardly ? "Hardly a kernel ran any more"
                                                  : "Far fewer kernels ran";
  finding.title = none + ": the job had ended, holds the GPU, or hangs";
  finding.candidates = {Cause::kHang, Cause::kUnreleasedAfterWork, Cause::kMonitoringMostlyElse};
  if (held && !freed) {
    finding.title = none + " while the memory stayed in use: the job hangs or holds the GPU";
    finding.candidates = {Cause::kHang, Cause::kUnreleasedAfterWork};
  } else if (freed && !held) {
    finding.title = none + ", and the memory was given back: the job had probably ended";
    finding.candidates = {Cause::kMonitoringMostlyElse, Cause::kUnreleasedAfterWork};  // what hangs keeps its memory
  }
  finding.would_overturn = "a longer log in which kernels come back";
  finding.advice = "look at the processes on the GPU (headroom devices), and at the stacks of one that is still there";
  if (freed && !held && nobody) {
    finding.title = none + ", and all memory was given back: the job on it had ended";
    finding.candidates.clear();
    finding.cause = Cause::kMonitoringMostlyElse;
    finding.evidence.emplace_back("with so little in use no program had a context of CUDA at the end");
    finding.advice = "give the GPU to the next job; end the log of a job with the job";
  }
  finding.bound = "the time at the end comes back";
  return only(std::move(finding));
}

// A log of several jobs, one after the other: what lies between them is none's idle time.
std::vector<Finding> between_jobs(const Analysis& a) {
  if (!readings_alone(a)) return {};
  Finding finding;
  finding.claims = between_jobs_of(a);
  if (!a.material(finding.cost())) return {};
  std::size_t times = 0;
  Nanos longest = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const std::vector<JobGap>& pauses = a.job_gaps[device];
    if (pauses.empty()) continue;
    const auto length = [](const JobGap& pause) { return pause.time.end - pause.time.begin; };
    const JobGap& most = *std::max_element(pauses.begin(), pauses.end(),
                                           [&](const JobGap& x, const JobGap& y) { return length(x) < length(y); });
    longest = std::max(longest, length(most));
    times = std::max(times, pauses.size());
    const auto memory = [](double bytes) { return human_bytes(static_cast<std::int64_t>(bytes)); };
    finding.evidence.push_back(fmt::format(
        "{}: {}{} of its memory in use on average from {} on, for {}, {} before and {} after", a.device_name(device),
        pauses.size() == 1 ? "" : fmt::format("{} pauses; in the longest ", pauses.size()), memory(most.in),
        a.when(most.time.begin), human_duration(length(most)), memory(most.before), memory(most.after)));
  }
  finding.tiers = "N";
  finding.confidence = Confidence::kMedium;
  finding.title = times == 1 ? fmt::format(
                                   "The memory was given back, and taken again {} later: probably one job had "
                                   "ended, and the next had not taken any yet",
                                   human_duration(longest))
                             : fmt::format(
                                   "The memory was given back and taken again {} times: probably jobs that "
                                   "ran one after the other, with pauses in between",
                                   times);
  if (times == 1)
    finding.cause = Cause::kMonitoringMostlyElse;
  else
    finding.candidates = {Cause::kMonitoringMostlyElse, Cause::kTrialChurn, Cause::kOomRestartLoop};
  finding.would_overturn = "a process that was on the GPU before a pause and after it";
  finding.advice = "start the next job when one ends (headroom batch does), and see whether each start-up is needed";
  gains_by_removal(a, finding, "if each job had taken its memory as soon as the one before it gave its own back");
  return only(std::move(finding));
}

// A log in which nothing ever ran says nothing about loaders and batches.
namespace {

// The most memory that was in use on a device where no program can have had a context: what the driver takes itself.
std::optional<std::int64_t> mebibytes_of_nobody(const Analysis& a, std::size_t device) {
  const MetricStats* memory = a.stats_of(device, Metric::kMemoryUsed);
  if (!memory || memory->samples == 0 || memory->max >= kLeastContext) return std::nullopt;
  return static_cast<std::int64_t>(memory->max) >> 20;
}

}  // namespace

std::vector<Finding> no_kernel_seen(const Analysis& a) {
  const bool hardly = a.ledger.busy() > 0;  // a kernel or two
  if (!readings_alone(a) || (hardly && !only_starts(a))) return {};
  // The driver's lists were read all the while, and nobody was in them.
  const bool of_the_job = a.meta.origin == "run" && a.job.has_contexts && a.job.uses.empty() &&
                          a.ledger.span() >= a.limits.time(Threshold::kNeverUsedAfter) && !a.material(unseen_at_end(a));
  if (a.job.has_contexts && !of_the_job) return {};
  Finding finding;
  finding.claims = of_the_job ? claim_accounts(a, {Account::kUnexplained, Account::kNoTask, Account::kNotUsed})
                              : claim_accounts(a, {Account::kUnexplained});
  if (!a.material(finding.cost())) return {};
  finding.tiers = "N";
  finding.confidence = Confidence::kMedium;
  finding.title = may_have_missed_kernels(a) ? "No kernel was seen in the time that readings cover"
                                             : "No kernel was seen in the recorded time";
  finding.candidates = {Cause::kJobNeverUsesGpu, Cause::kMonitoringMostlyElse, Cause::kUnreleasedAfterWork,
                        Cause::kHang};
  if (of_the_job) {  // all of this is the job's time, and nobody was ever on a GPU
    finding.candidates.clear();
    finding.cause = Cause::kJobNeverUsesGpu;
    finding.evidence.push_back("the driver listed no compute process on any GPU while the job ran");
  }
  if (hardly) {
    finding.title = "Hardly a kernel was seen in the recorded time";
    std::erase(finding.candidates, Cause::kJobNeverUsesGpu);
  }
  bool held = false, starts = false, stands = false;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const auto free = mebibytes_of_nobody(a, device);
    const Growth grew = growth(a, device);
    starts |= !grew.words.empty();
    stands |= !free && !grew.lately;
    held |= !free && grew.words.empty();
    if (!grew.words.empty())
      finding.evidence.push_back(grew.words);
    else if (free)
      finding.evidence.push_back(fmt::format("{}: {} MiB in use at most: no program had a context of CUDA there",
                                             a.device_name(device), *free));
    else if (const auto words = memory_words(a, device); !words.empty())
      finding.evidence.push_back(words);
  }
  if (held)
    finding.evidence.push_back("memory in use only says that somebody holds it");
  else
    std::erase(finding.candidates, Cause::kUnreleasedAfterWork);
  if (!stands) std::erase(finding.candidates, Cause::kHang);
  finding.would_overturn = "kernels in a longer recording";
  finding.advice =
      "check torch.cuda.is_available(), the CUDA build (torch.version.cuda) and CUDA_VISIBLE_DEVICES; record the job "
      "itself: headroom run -- CMD";
  if (starts && !of_the_job) {
    finding.candidates.insert(finding.candidates.begin(), Cause::kStartupLoad);
    finding.advice = "log on until its kernels run, or record the job itself: headroom run -- CMD";
  }
  finding.bound = "unknown: nothing in this recording shows how fast the GPU would be";
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
